define double @f(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %s = phi double [ 0.0, %entry ], [ %t, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %out
body:
  %q = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %q
  %t = fadd double %s, %v
  %next = add i64 %i, 1
  br label %head
out:
  ret double %s
}
