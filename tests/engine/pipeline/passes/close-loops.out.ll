define double @f(ptr %p, i64 %n) {
entry:
  %v0 = alloca double, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %q = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %q
  store double %v, ptr %v0, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  %v1 = load double, ptr %v0, align 8
  %r = fmul double %v1, 2.000000e+00
  ret double %r
}
