define internal double @irgrad.strong_mul.f64(double %a, double %s) alwaysinline nounwind willreturn memory(none) {
  %none = fcmp oeq double %a, zeroinitializer
  %product = fmul double %a, %s
  %result = select i1 %none, double zeroinitializer, double %product
  ret double %result
}
define internal double @irgrad.strong_mul_both.f64(double %a, double %s) alwaysinline nounwind willreturn memory(none) {
  %none = fcmp oeq double %a, zeroinitializer
  %flat = fcmp oeq double %s, zeroinitializer
  %number = fcmp ord double %a, zeroinitializer
  %still = and i1 %flat, %number
  %either = or i1 %none, %still
  %product = fmul double %a, %s
  %result = select i1 %either, double zeroinitializer, double %product
  ret double %result
}
define double @f(double %x, double %y) {
  %a = call double @irgrad.strong_mul.f64(double %x, double %y)
  %b = call double @irgrad.strong_mul_both.f64(double %a, double %y)
  ret double %b
}
