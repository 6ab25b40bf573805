; ModuleID = '<string>'
source_filename = "<string>"

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <2 x double> @llvm.masked.load.v2f64.p0(ptr captures(none), <2 x i1>, <2 x double>) #0

define <2 x double> @f(ptr %p, <2 x i1> %m) {
  %v = call <2 x double> @irgrad.masked.load.v2f64.p0.8(ptr align 8 %p, <2 x i1> %m, <2 x double> zeroinitializer)
  ret <2 x double> %v
}

attributes #0 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }

define internal <2 x double> @irgrad.masked.load.v2f64.p0.8(ptr %p, <2 x i1> %m, <2 x double> %v) alwaysinline nounwind {
start:
  %m0 = extractelement <2 x i1> %m, i64 0
  br i1 %m0, label %do0, label %on0
do0:
  %p0 = getelementptr inbounds double, ptr %p, i64 0
  %e0 = load double, ptr %p0, align 8
  %w0 = insertelement <2 x double> %v, double %e0, i64 0
  br label %on0
on0:
  %r0 = phi <2 x double> [ %v, %start ], [ %w0, %do0 ]
  %m1 = extractelement <2 x i1> %m, i64 1
  br i1 %m1, label %do1, label %on1
do1:
  %p1 = getelementptr inbounds double, ptr %p, i64 1
  %e1 = load double, ptr %p1, align 8
  %w1 = insertelement <2 x double> %r0, double %e1, i64 1
  br label %on1
on1:
  %r1 = phi <2 x double> [ %r0, %on0 ], [ %w1, %do1 ]
  ret <2 x double> %r1
}
