define double @f(double %x, i1 %c) {
0:
  br i1 %c, label %a, label %b
a:
  br label %return
b:
  %y = fmul double %x, %x
  br label %return
return:
  %v0 = phi double [ %x, %a ], [ %y, %b ]
  ret double %v0
}
