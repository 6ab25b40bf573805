@other = weak_odr hidden unnamed_addr alias double (double), ptr @f
define double @f(double %x) {
  ret double %x
}
