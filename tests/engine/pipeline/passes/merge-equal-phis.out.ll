define double @f(ptr %p, i64 %i, i1 %c) {
0:
  br i1 %c, label %a, label %b
a:
  %pa = getelementptr double, ptr %p, i64 %i
  br label %out
b:
  %pb = getelementptr double, ptr %p, i64 %i
  br label %out
out:
  %q = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %q
  ret double %v
}
