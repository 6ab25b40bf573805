define double @f(<2 x ptr> %ps, i64 %i) {
0:
  %v0 = extractelement <2 x ptr> %ps, i64 1
  %v1 = extractelement <2 x ptr> %ps, i64 0
  %qs = getelementptr double, <2 x ptr> %ps, i64 %i
  %v2 = getelementptr double, ptr %v0, i64 %i
  %v3 = getelementptr double, ptr %v1, i64 %i
  %x = load double, ptr %v3
  %y = load double, ptr %v2
  %s = fadd double %x, %y
  ret double %s
}
