declare double @sin(double)
declare float @powf(float, float)
declare double @tgamma(double)
define double @f(double %x, float %y) {
  %a = call double @sin(double %x)
  %b = call float @powf(float %y, float 2.0)
  %c = fpext float %b to double
  %d = call double @tgamma(double %x)
  %e = fadd double %a, %c
  %g = fadd double %e, %d
  ret double %g
}
