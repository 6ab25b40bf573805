define double @f(double %x, i1 %c) {
  br i1 %c, label %a, label %b
a:
  ret double %x
b:
  %y = fmul double %x, %x
  ret double %y
}
