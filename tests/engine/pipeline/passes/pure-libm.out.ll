declare double @sin(double)
declare float @powf(float, float)
declare double @tgamma(double)
define double @f(double %x, float %y) {
  %a = call double @llvm.sin.f64(double %x)
  %b = call float @llvm.pow.f32(float %y, float 2.0)
  %c = fpext float %b to double
  %d = call double @tgamma(double %x)
  %e = fadd double %a, %c
  %g = fadd double %e, %d
  ret double %g
}

declare double @llvm.sin.f64(double)

declare float @llvm.pow.f32(float, float)
