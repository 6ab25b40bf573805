declare <2 x double> @llvm.masked.load.v2f64.p0(ptr, <2 x i1>, <2 x double>)
define <2 x double> @f(ptr %p, <2 x i1> %m) {
  %v = call <2 x double> @llvm.masked.load.v2f64.p0(ptr align 8 %p, <2 x i1> %m, <2 x double> zeroinitializer)
  ret <2 x double> %v
}
