define double @f(ptr %p, i64 %i, i1 %c) {
  br i1 %c, label %a, label %b
a:
  %pa = getelementptr double, ptr %p, i64 %i
  br label %out
b:
  %pb = getelementptr double, ptr %p, i64 %i
  br label %out
out:
  %q = phi ptr [ %pa, %a ], [ %pb, %b ]
  %v = load double, ptr %q
  ret double %v
}
