; Products of complex numbers (`normalise/complex_products.py`). Source: ISO/IEC 9899:2018, Annex G.5.1.

define internal { double, double } @irgrad.complex_product.f64(double %a, double %b, double %c, double %d) alwaysinline nounwind willreturn memory(none) {
product:
  %ac = fmul double %a, %c
  %bd = fmul double %b, %d
  %ad = fmul double %a, %d
  %bc = fmul double %b, %c
  %r = fsub double %ac, %bd
  %i = fadd double %ad, %bc
  %r.nan = fcmp uno double %r, 0.000000e+00
  br i1 %r.nan, label %half, label %out, !prof !{!"branch_weights", i32 1, i32 1048575}
half:
  %i.nan = fcmp uno double %i, 0.000000e+00
  br i1 %i.nan, label %recover, label %out, !prof !{!"branch_weights", i32 1, i32 1048575}
recover:
  %s = call { double, double } @irgrad.complex_product.recover.f64(double %a, double %b, double %c, double %d)
  %s.re = extractvalue { double, double } %s, 0
  %s.im = extractvalue { double, double } %s, 1
  br label %out
out:
  %re = phi double [ %r, %product ], [ %r, %half ], [ %s.re, %recover ]
  %im = phi double [ %i, %product ], [ %i, %half ], [ %s.im, %recover ]
  %one = insertvalue { double, double } poison, double %re, 0
  %both = insertvalue { double, double } %one, double %im, 1
  ret { double, double } %both
}

; The product where both parts are NaN by the formula: an infinite factor becomes a number of modulus one, what is NaN
; beside it zero, and the product of these is infinite.
define internal { double, double } @irgrad.complex_product.recover.f64(double %a, double %b, double %c, double %d) noinline cold nounwind willreturn memory(none) {
  %ac = fmul double %a, %c
  %bd = fmul double %b, %d
  %ad = fmul double %a, %d
  %bc = fmul double %b, %c
  %over.r = call i1 @irgrad.complex_product.infinite.f64(double %ac, double %bd)
  %over.i = call i1 @irgrad.complex_product.infinite.f64(double %ad, double %bc)
  %over = or i1 %over.r, %over.i
  %left = call i1 @irgrad.complex_product.infinite.f64(double %a, double %b)
  %a1 = call double @irgrad.complex_product.boxed.f64(double %a, i1 %left)
  %b1 = call double @irgrad.complex_product.boxed.f64(double %b, i1 %left)
  %c1 = call double @irgrad.complex_product.number.f64(double %c, i1 %left)
  %d1 = call double @irgrad.complex_product.number.f64(double %d, i1 %left)
  %right = call i1 @irgrad.complex_product.infinite.f64(double %c1, double %d1)
  %c2 = call double @irgrad.complex_product.boxed.f64(double %c1, i1 %right)
  %d2 = call double @irgrad.complex_product.boxed.f64(double %d1, i1 %right)
  %some = or i1 %right, %over
  %a3 = call double @irgrad.complex_product.number.f64(double %a1, i1 %some)
  %b3 = call double @irgrad.complex_product.number.f64(double %b1, i1 %some)
  %c3 = call double @irgrad.complex_product.number.f64(double %c2, i1 %over)
  %d3 = call double @irgrad.complex_product.number.f64(double %d2, i1 %over)
  %ac3 = fmul double %a3, %c3
  %bd3 = fmul double %b3, %d3
  %ad3 = fmul double %a3, %d3
  %bc3 = fmul double %b3, %c3
  %r3 = fsub double %ac3, %bd3
  %i3 = fadd double %ad3, %bc3
  %any = or i1 %left, %some
  %scale = select i1 %any, double 0x7FF0000000000000, double 0x7FF8000000000000
  %re = fmul double %r3, %scale
  %im = fmul double %i3, %scale
  %one = insertvalue { double, double } poison, double %re, 0
  %both = insertvalue { double, double } %one, double %im, 1
  ret { double, double } %both
}

define internal i1 @irgrad.complex_product.infinite.f64(double %x, double %y) nounwind willreturn memory(none) {
  %x.size = call double @llvm.fabs.f64(double %x)
  %y.size = call double @llvm.fabs.f64(double %y)
  %x.inf = fcmp oeq double %x.size, 0x7FF0000000000000
  %y.inf = fcmp oeq double %y.size, 0x7FF0000000000000
  %either = or i1 %x.inf, %y.inf
  ret i1 %either
}

define internal double @irgrad.complex_product.boxed.f64(double %x, i1 %when) nounwind willreturn memory(none) {
  %size = call double @llvm.fabs.f64(double %x)
  %inf = fcmp oeq double %size, 0x7FF0000000000000
  %one = uitofp i1 %inf to double
  %box = call double @llvm.copysign.f64(double %one, double %x)
  %result = select i1 %when, double %box, double %x
  ret double %result
}

define internal double @irgrad.complex_product.number.f64(double %x, i1 %when) nounwind willreturn memory(none) {
  %nan = fcmp uno double %x, 0.000000e+00
  %lost = and i1 %when, %nan
  %zero = call double @llvm.copysign.f64(double 0.000000e+00, double %x)
  %result = select i1 %lost, double %zero, double %x
  ret double %result
}

declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
