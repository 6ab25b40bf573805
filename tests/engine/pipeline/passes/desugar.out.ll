declare void @sincos(double, ptr, ptr)
declare double @fma(double, double, double)
define double @f(double %x, ptr %s, ptr %c, ptr %t) {
0:
  %v0 = call double @llvm.sin.f64(double %x)
  %v1 = call double @llvm.cos.f64(double %x)
  store double %v0, ptr %s
  store double %v1, ptr %c
  %v2 = load double, ptr %t
  %v3 = fadd double %v2, %x
  store double %v3, ptr %t
  %y = call double @fma(double %x, double %v2, double %x)
  ret double %y
}
declare double @llvm.sin.f64(double) nounwind willreturn memory(none)
declare double @llvm.cos.f64(double) nounwind willreturn memory(none)
