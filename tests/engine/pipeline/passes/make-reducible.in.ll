define double @f(double %x, i1 %c, i64 %n) {
  br i1 %c, label %a, label %b
a:
  %i = phi i64 [ 0, %0 ], [ %k, %b ]
  %s = phi double [ %x, %0 ], [ %t, %b ]
  %u = fmul double %s, %x
  %j = add i64 %i, 1
  br label %b
b:
  %k = phi i64 [ 1, %0 ], [ %j, %a ]
  %t = phi double [ 1.0, %0 ], [ %u, %a ]
  %go = icmp ult i64 %k, %n
  br i1 %go, label %a, label %out
out:
  ret double %t
}
