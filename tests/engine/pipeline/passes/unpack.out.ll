define <2 x double> @f(ptr %p, ptr %q) {
0:
  %v = load <2 x i64>, ptr %p, align 16
  %w = shufflevector <2 x i64> %v, <2 x i64> poison, <2 x i32> <i32 1, i32 0>
  store <2 x i64> %w, ptr %q, align 16
  %v0 = bitcast <2 x i64> %v to <2 x double>
  %v1 = extractelement <2 x double> %v0, i64 1
  %v2 = bitcast <2 x i64> %v to <2 x double>
  %v3 = extractelement <2 x double> %v2, i64 0
  %v4 = insertelement <2 x double> poison, double %v1, i64 0
  %v5 = insertelement <2 x double> %v4, double %v3, i64 1
  %x = bitcast <2 x i64> %w to <2 x double>
  %y = fmul <2 x double> %v5, %v5
  ret <2 x double> %y
}
