declare double @irgrad.strong_mul.f64(double, double)
declare double @irgrad.strong_mul_both.f64(double, double)
define double @f(double %x, double %y) {
  %a = call double @irgrad.strong_mul.f64(double %x, double %y)
  %b = call double @irgrad.strong_mul_both.f64(double %a, double %y)
  ret double %b
}
