define double @f(ptr %p) {
entry:
  %s = alloca double
  %i = alloca i64
  store double 0.0, ptr %s
  store i64 0, ptr %i
  br label %head
head:
  %k = load i64, ptr %i
  %more = icmp slt i64 %k, 3
  br i1 %more, label %body, label %out
body:
  %q = getelementptr double, ptr %p, i64 %k
  %v = load double, ptr %q
  %old = load double, ptr %s
  %new = fadd double %old, %v
  store double %new, ptr %s
  %next = add i64 %k, 1
  store i64 %next, ptr %i
  br label %head
out:
  %r = load double, ptr %s
  ret double %r
}
