define internal i1 @irgrad.idle.double(double %x) alwaysinline nounwind willreturn memory(none) {
  %zero = fcmp oeq double %x, 0.000000e+00
  ret i1 %zero
}
define i1 @f(double %x) {
  %none = call i1 @irgrad.idle.double(double %x)
  ret i1 %none
}
