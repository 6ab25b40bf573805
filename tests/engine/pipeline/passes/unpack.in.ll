define <2 x double> @f(ptr %p, ptr %q) {
  %v = load <2 x i64>, ptr %p, align 16
  %w = shufflevector <2 x i64> %v, <2 x i64> poison, <2 x i32> <i32 1, i32 0>
  store <2 x i64> %w, ptr %q, align 16
  %x = bitcast <2 x i64> %w to <2 x double>
  %y = fmul <2 x double> %x, %x
  ret <2 x double> %y
}
