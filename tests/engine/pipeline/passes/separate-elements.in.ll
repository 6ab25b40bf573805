define double @f(<2 x ptr> %ps, i64 %i) {
  %qs = getelementptr double, <2 x ptr> %ps, i64 %i
  %a = extractelement <2 x ptr> %qs, i64 0
  %b = extractelement <2 x ptr> %qs, i64 1
  %x = load double, ptr %a
  %y = load double, ptr %b
  %s = fadd double %x, %y
  ret double %s
}
