declare void @sincos(double, ptr, ptr)
declare double @fma(double, double, double)
define double @f(double %x, ptr %s, ptr %c, ptr %t) {
  call void @sincos(double %x, ptr %s, ptr %c)
  %old = atomicrmw fadd ptr %t, double %x seq_cst
  %y = call double @fma(double %x, double %old, double %x)
  ret double %y
}
