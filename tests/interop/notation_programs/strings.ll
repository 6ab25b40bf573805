; annotations as metadata strings
@.ok = private constant [10 x i8] c"all right\00"
declare i32 @puts(ptr)
declare double @__enzyme_autodiff(ptr, ...)
declare { double, double } @__enzyme_fwddiff(ptr, ...)

define double @f(double %x, double %y, ptr %p) {
  %v = load double, ptr %p, align 8
  %xy = fmul double %x, %y
  %r = fmul double %xy, %v
  ret double %r
}

define i32 @main() {
  %p = alloca double, align 8
  %d = alloca double, align 8
  %e = alloca [2 x double], align 8
  store double 3.0, ptr %p, align 8
  store double 0.0, ptr %d, align 8
  store [2 x double] [double 1.0, double 2.0], ptr %e, align 8
  %g = call double (ptr, ...) @__enzyme_autodiff(ptr @f, metadata !"enzyme_out", double 2.0, metadata !"enzyme_const", double 5.0, metadata !"enzyme_dup", ptr %p, ptr %d)
  %t = call { double, double } (ptr, ...) @__enzyme_fwddiff(ptr @f, metadata !"enzyme_width", i32 2, metadata !"enzyme_const", double 2.0, metadata !"enzyme_const", double 5.0, metadata !"enzyme_dupv", i64 8, ptr %p, ptr %e)
  %t1 = extractvalue { double, double } %t, 1
  %dp = load double, ptr %d, align 8
  %a = fcmp oeq double %g, 15.0
  %b = fcmp oeq double %dp, 10.0
  %c = fcmp oeq double %t1, 20.0
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  br i1 %abc, label %good, label %bad
good:
  %n = call i32 @puts(ptr @.ok)
  ret i32 0
bad:
  ret i32 1
}
