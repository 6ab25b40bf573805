; ModuleID = '<string>'
source_filename = "<string>"

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read)
define double @f(ptr readonly captures(none) %p) local_unnamed_addr #0 {
entry:
  %v = load double, ptr %p, align 8
  %new = fadd double %v, 0.000000e+00
  %q.1 = getelementptr i8, ptr %p, i64 8
  %v.1 = load double, ptr %q.1, align 8
  %new.1 = fadd double %new, %v.1
  %q.2 = getelementptr i8, ptr %p, i64 16
  %v.2 = load double, ptr %q.2, align 8
  %new.2 = fadd double %new.1, %v.2
  ret double %new.2
}

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read) }
