define double @f(double %x, i1 %c, i64 %n) {
0:
  %v0 = alloca i64, align 8
  %v1 = alloca double, align 8
  %v2 = alloca i64, align 8
  %v3 = alloca double, align 8
  %v4 = alloca double, align 8
  store i64 1, ptr %v0
  store double 1.000000e+00, ptr %v1
  store i64 0, ptr %v2
  store double %x, ptr %v3
  br i1 %c, label %a.enter, label %b.enter
a:
  %i = load i64, ptr %v2
  %s = load double, ptr %v3
  %u = fmul double %s, %x
  %j = add i64 %i, 1
  store i64 %j, ptr %v0
  store double %u, ptr %v1
  br label %b.again
a.enter:
  br label %dispatch
b.enter:
  br label %dispatch
b.again:
  br label %dispatch
a.again:
  br label %dispatch
dispatch:
  %v5 = phi i32 [ 1, %a.enter ], [ 0, %b.enter ], [ 0, %b.again ], [ 1, %a.again ]
  switch i32 %v5, label %b [ i32 1, label %a ]
b:
  %k = load i64, ptr %v0
  %t = load double, ptr %v1
  store double %t, ptr %v4
  %go = icmp ult i64 %k, %n
  store i64 %k, ptr %v2
  store double %t, ptr %v3
  br i1 %go, label %a.again, label %out
out:
  %v6 = load double, ptr %v4
  ret double %v6
}
