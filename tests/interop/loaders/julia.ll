; ModuleID = 'energy'
source_filename = "energy"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128-ni:10:11:12:13"
target triple = "x86_64-unknown-linux-gnu"

@"+Core.DomainError#41" = external constant ptr
@"jl_global#43" = external constant ptr

; What `code_llvm(io, energy, (Ptr{Float64}, Ptr{Float64}, Int); dump_module=true, raw=true)` writes of
;
;     function energy(pos::Ptr{Float64}, mass::Ptr{Float64}, n::Int)
;         e = 0.0
;         for i in 1:n
;             m = unsafe_load(mass, i)
;             m < 0 && throw(DomainError(m, "a mass"))
;             for j in 1:i-1
;                 r = 0.01
;                 for k in 1:3
;                     d = unsafe_load(pos, 3i - 3 + k) - unsafe_load(pos, 3j - 3 + k)
;                     r += d * d
;                 end
;                 e -= m * unsafe_load(mass, j) / sqrt(r)
;             end
;         end
;         return e
;     end
; Function Signature: energy(Ptr{Float64}, Ptr{Float64}, Int64)
; Function Attrs: sspstrong uwtable
define double @julia_energy_37(ptr %"pos::Ptr", ptr %"mass::Ptr", i64 signext %"n::Int64") #0 !dbg !5 {
top:
  %pgcstack = call ptr @julia.get_pgcstack()
  %ptls_field = getelementptr inbounds i8, ptr %pgcstack, i64 16
  %ptls_load = load ptr, ptr %ptls_field, align 8
  %0 = getelementptr inbounds i8, ptr %ptls_load, i64 16
  %safepoint = load ptr, ptr %0, align 8
  fence syncscope("singlethread") seq_cst
  call void @julia.safepoint(ptr %safepoint), !dbg !8
  fence syncscope("singlethread") seq_cst
  %1 = call i64 @llvm.smax.i64(i64 %"n::Int64", i64 0), !dbg !8
  %.not = icmp eq i64 %1, 0, !dbg !8
  br i1 %.not, label %L90, label %L13, !dbg !8

L13:                                              ; preds = %L79, %top
  %value_phi4 = phi i64 [ %14, %L79 ], [ 1, %top ]
  %value_phi6 = phi double [ %value_phi20, %L79 ], [ 0.000000e+00, %top ]
  %2 = add nsw i64 %value_phi4, -1, !dbg !9
  %3 = getelementptr inbounds double, ptr %"mass::Ptr", i64 %2, !dbg !9
  %unsafe_load = load double, ptr %3, align 1, !dbg !9, !tbaa !16
  %4 = fcmp ult double %unsafe_load, 0.000000e+00, !dbg !10
  %5 = fcmp uno double %unsafe_load, 0.000000e+00, !dbg !10
  %6 = xor i1 %5, true, !dbg !10
  %7 = and i1 %4, %6, !dbg !10
  br i1 %7, label %L21, label %L24, !dbg !10

L21:                                              ; preds = %L13
  %jl_global = load ptr, ptr @"jl_global#43", align 8, !dbg !10
  %box_Float64 = call nonnull ptr @ijl_box_float64(double %unsafe_load), !dbg !10
  %box = call noalias nonnull align 8 dereferenceable(32) ptr @ijl_gc_small_alloc(ptr %ptls_load, i32 408, i32 32, i64 140320), !dbg !10
  store ptr %box_Float64, ptr %box, align 8, !dbg !10
  call void @ijl_throw(ptr nonnull %box), !dbg !10
  unreachable, !dbg !10

L24:                                              ; preds = %L13
  %.not2 = icmp eq i64 %2, 0, !dbg !11
  br i1 %.not2, label %L79, label %L40, !dbg !11

L40:                                              ; preds = %L72, %L24
  %value_phi11 = phi i64 [ %13, %L72 ], [ 1, %L24 ]
  %value_phi12 = phi double [ %12, %L72 ], [ %value_phi6, %L24 ]
  br label %L45, !dbg !12

L45:                                              ; preds = %L45, %L40
  %value_phi15 = phi i64 [ 1, %L40 ], [ %11, %L45 ]
  %value_phi16 = phi double [ 1.000000e-02, %L40 ], [ %10, %L45 ]
  %i3 = mul i64 %2, 3, !dbg !13
  %.reass = add i64 %i3, %value_phi15, !dbg !13
  %at = add i64 %.reass, -1, !dbg !13
  %p = getelementptr inbounds double, ptr %"pos::Ptr", i64 %at, !dbg !13
  %unsafe_load17 = load double, ptr %p, align 1, !dbg !13, !tbaa !16
  %8 = add nsw i64 %value_phi11, -1, !dbg !13
  %j3 = mul i64 %8, 3, !dbg !13
  %.reass2 = add i64 %j3, %value_phi15, !dbg !13
  %at2 = add i64 %.reass2, -1, !dbg !13
  %p2 = getelementptr inbounds double, ptr %"pos::Ptr", i64 %at2, !dbg !13
  %unsafe_load18 = load double, ptr %p2, align 1, !dbg !13, !tbaa !16
  %d = fsub double %unsafe_load17, %unsafe_load18, !dbg !13
  %9 = fmul double %d, %d, !dbg !14
  %10 = fadd double %value_phi16, %9, !dbg !14
  %.not3 = icmp eq i64 %value_phi15, 3, !dbg !14
  %11 = add nuw nsw i64 %value_phi15, 1, !dbg !14
  br i1 %.not3, label %L66, label %L45, !dbg !14

L66:                                              ; preds = %L45
  %root = fcmp ult double %10, 0.000000e+00, !dbg !15
  br i1 %root, label %L68, label %L72, !dbg !15

L68:                                              ; preds = %L66
  call void @j_throw_complex_domainerror_45(ptr nonnull @"jl_global#43", double %10) #3, !dbg !15
  unreachable, !dbg !15

L72:                                              ; preds = %L66
  %q = getelementptr inbounds double, ptr %"mass::Ptr", i64 %8, !dbg !15
  %unsafe_load19 = load double, ptr %q, align 1, !dbg !15, !tbaa !16
  %mm = fmul double %unsafe_load, %unsafe_load19, !dbg !15
  %s = call double @llvm.sqrt.f64(double %10), !dbg !15
  %t = fdiv double %mm, %s, !dbg !15
  %12 = fsub double %value_phi12, %t, !dbg !15
  %13 = add nuw nsw i64 %value_phi11, 1, !dbg !15
  %.not4 = icmp eq i64 %value_phi11, %2, !dbg !15
  br i1 %.not4, label %L79, label %L40, !dbg !15

L79:                                              ; preds = %L72, %L24
  %value_phi20 = phi double [ %value_phi6, %L24 ], [ %12, %L72 ]
  %14 = add nuw i64 %value_phi4, 1, !dbg !8
  %.not5 = icmp eq i64 %value_phi4, %1, !dbg !8
  br i1 %.not5, label %L90, label %L13, !dbg !8

L90:                                              ; preds = %L79, %top
  %value_phi23 = phi double [ 0.000000e+00, %top ], [ %value_phi20, %L79 ]
  ret double %value_phi23, !dbg !15
}

; Function Attrs: noinline optnone
define nonnull ptr @jfptr_energy_38(ptr %"function::Core.Function", ptr noalias nocapture noundef readonly %"args::Any[]", i32 %"nargs::UInt32") #1 {
top:
  %thread_ptr = call ptr asm "movq %fs:0, $0", "=r"() #4
  %tls_ppgcstack = getelementptr i8, ptr %thread_ptr, i64 -8
  %tls_pgcstack = load ptr, ptr %tls_ppgcstack, align 8
  %0 = load ptr addrspace(10), ptr %"args::Any[]", align 8
  %1 = addrspacecast ptr addrspace(10) %0 to ptr addrspace(11)
  %unbox = load ptr, ptr addrspace(11) %1, align 8
  %2 = call double @julia_energy_37(ptr %unbox, ptr %unbox, i64 signext 1)
  %box_Float64 = call nonnull ptr @ijl_box_float64(double %2)
  ret ptr %box_Float64
}

declare ptr @julia.get_pgcstack()

; Function Attrs: memory(argmem: readwrite, inaccessiblemem: readwrite)
declare void @julia.safepoint(ptr) #2

declare nonnull ptr @ijl_box_float64(double)

declare noalias nonnull ptr @ijl_gc_small_alloc(ptr, i32, i32, i64)

; Function Attrs: noreturn
declare void @ijl_throw(ptr) #3

; Function Attrs: noreturn
declare void @j_throw_complex_domainerror_45(ptr, double) #3

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.sqrt.f64(double)

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64)

attributes #0 = { sspstrong uwtable "frame-pointer"="all" "julia.fsig"="energy(Ptr{Float64}, Ptr{Float64}, Int64)" "probe-stack"="inline-asm" }
attributes #1 = { noinline optnone "frame-pointer"="all" "probe-stack"="inline-asm" "thunk" }
attributes #2 = { memory(argmem: readwrite, inaccessiblemem: readwrite) }
attributes #3 = { noreturn }
attributes #4 = { nounwind }

!llvm.module.flags = !{!0, !1}
!llvm.dbg.cu = !{!2}

!0 = !{i32 2, !"Dwarf Version", i32 4}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = distinct !DICompileUnit(language: DW_LANG_Julia, file: !3, producer: "julia", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, nameTableKind: GNU)
!3 = !DIFile(filename: "julia", directory: ".")
!4 = !DIFile(filename: "model.jl", directory: ".")
!5 = distinct !DISubprogram(name: "energy", linkageName: "julia_energy_37", scope: null, file: !4, line: 1, type: !6, scopeLine: 1, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2, retainedNodes: !7)
!6 = !DISubroutineType(types: !7)
!7 = !{}
!8 = !DILocation(line: 3, scope: !5)
!9 = !DILocation(line: 4, scope: !5)
!10 = !DILocation(line: 5, scope: !5)
!11 = !DILocation(line: 6, scope: !5)
!12 = !DILocation(line: 8, scope: !5)
!13 = !DILocation(line: 9, scope: !5)
!14 = !DILocation(line: 10, scope: !5)
!15 = !DILocation(line: 12, scope: !5)
!16 = !{!17, !17, i64 0}
!17 = !{!"jtbaa_data", !18, i64 0}
!18 = !{!"jtbaa", !19, i64 0}
!19 = !{!"jtbaa"}
