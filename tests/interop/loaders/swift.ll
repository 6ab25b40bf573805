; ModuleID = '<swift-imported-modules>'
source_filename = "<swift-imported-modules>"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%TSd = type <{ double }>
%TSi = type <{ i64 }>

@".str.15.a negative mass" = private unnamed_addr constant [16 x i8] c"a negative mass\00"
@".str.11.Fatal error" = private unnamed_addr constant [12 x i8] c"Fatal error\00"
@".str.17.model/model.swift" = private unnamed_addr constant [18 x i8] c"model/model.swift\00"
@"_swift1_autolink_entries" = private constant [14 x i8] c"-lswiftCore\00-l", section ".swift1_autolink_entries", no_sanitize_address, align 8
@__swift_reflection_version = linkonce_odr hidden constant i16 3
@llvm.used = appending global [2 x ptr] [ptr @_swift1_autolink_entries, ptr @__swift_reflection_version], section "llvm.metadata"

; What `swiftc -O -g -emit-ir model.swift` writes of
;
;     @_cdecl("energy")
;     public func energy(_ pos: UnsafePointer<Double>, _ mass: UnsafePointer<Double>, _ n: Int) -> Double {
;         var e = 0.0
;         for i in 0..<n {
;             if mass[i] < 0 { fatalError("a negative mass") }
;             for j in 0..<i {
;                 var r = 0.01
;                 for k in 0..<3 {
;                     let d = pos[3 * i + k] - pos[3 * j + k]
;                     r += d * d
;                 }
;                 e -= mass[i] * mass[j] / r.squareRoot()
;             }
;         }
;         return e
;     }
define double @energy(ptr noundef %0, ptr noundef %1, i64 noundef %2) #0 !dbg !9 {
  %4 = tail call swiftcc double @"$s5modelAA6energyySdSPySdG_ACSitF"(ptr %0, ptr %1, i64 %2), !dbg !12
  ret double %4, !dbg !12
}

define swiftcc double @"$s5modelAA6energyySdSPySdG_ACSitF"(ptr %0, ptr %1, i64 %2) local_unnamed_addr #0 !dbg !13 {
entry:
  %3 = icmp slt i64 %2, 0, !dbg !14
  br i1 %3, label %47, label %4, !dbg !14, !prof !23

4:                                                ; preds = %entry
  %5 = icmp eq i64 %2, 0, !dbg !14
  br i1 %5, label %44, label %6, !dbg !14

6:                                                ; preds = %41, %4
  %7 = phi i64 [ %9, %41 ], [ 0, %4 ]
  %8 = phi double [ %42, %41 ], [ 0.000000e+00, %4 ]
  %9 = add nuw nsw i64 %7, 1, !dbg !14
  %10 = getelementptr inbounds %TSd, ptr %1, i64 %7, !dbg !15
  %._value = getelementptr inbounds %TSd, ptr %10, i32 0, i32 0, !dbg !15
  %11 = load double, ptr %._value, align 8, !dbg !15
  %12 = fcmp olt double %11, 0.000000e+00, !dbg !15
  br i1 %12, label %46, label %13, !dbg !15

13:                                               ; preds = %6
  %14 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %7, i64 3), !dbg !16
  %15 = extractvalue { i64, i1 } %14, 0, !dbg !16
  %16 = extractvalue { i64, i1 } %14, 1, !dbg !16
  br i1 %16, label %48, label %17, !dbg !16, !prof !23

17:                                               ; preds = %13
  %18 = icmp eq i64 %7, 0, !dbg !17
  br i1 %18, label %41, label %19, !dbg !17

19:                                               ; preds = %36, %17
  %20 = phi i64 [ %22, %36 ], [ 0, %17 ]
  %21 = phi double [ %40, %36 ], [ %8, %17 ]
  %22 = add nuw nsw i64 %20, 1, !dbg !17
  %23 = mul i64 %20, 3, !dbg !16
  br label %24, !dbg !18

24:                                               ; preds = %24, %19
  %25 = phi i64 [ 0, %19 ], [ %27, %24 ]
  %26 = phi double [ 1.000000e-02, %19 ], [ %35, %24 ]
  %27 = add nuw nsw i64 %25, 1, !dbg !18
  %28 = add i64 %15, %25, !dbg !16
  %29 = getelementptr inbounds %TSd, ptr %0, i64 %28, !dbg !16
  %._value1 = getelementptr inbounds %TSd, ptr %29, i32 0, i32 0, !dbg !16
  %30 = load double, ptr %._value1, align 8, !dbg !16
  %31 = add i64 %23, %25, !dbg !16
  %32 = getelementptr inbounds %TSd, ptr %0, i64 %31, !dbg !16
  %._value2 = getelementptr inbounds %TSd, ptr %32, i32 0, i32 0, !dbg !16
  %33 = load double, ptr %._value2, align 8, !dbg !16
  %34 = fsub double %30, %33, !dbg !16
  %sq = fmul double %34, %34, !dbg !19
  %35 = fadd double %26, %sq, !dbg !19
  %last = icmp eq i64 %27, 3, !dbg !18
  br i1 %last, label %36, label %24, !dbg !18

36:                                               ; preds = %24
  %37 = getelementptr inbounds %TSd, ptr %1, i64 %20, !dbg !20
  %._value3 = getelementptr inbounds %TSd, ptr %37, i32 0, i32 0, !dbg !20
  %38 = load double, ptr %._value3, align 8, !dbg !20
  %mm = fmul double %11, %38, !dbg !20
  %39 = tail call double @llvm.sqrt.f64(double %35), !dbg !20
  %q = fdiv double %mm, %39, !dbg !20
  %40 = fsub double %21, %q, !dbg !20
  %done = icmp eq i64 %22, %7, !dbg !17
  br i1 %done, label %41, label %19, !dbg !17

41:                                               ; preds = %36, %17
  %42 = phi double [ %8, %17 ], [ %40, %36 ]
  %43 = icmp eq i64 %9, %2, !dbg !14
  br i1 %43, label %44, label %6, !dbg !14

44:                                               ; preds = %41, %4
  %45 = phi double [ 0.000000e+00, %4 ], [ %42, %41 ]
  ret double %45, !dbg !21

46:                                               ; preds = %6
  tail call swiftcc void @"$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF"(i64 ptrtoint (ptr @".str.11.Fatal error" to i64), i64 11, i8 2, i64 -3458764513820540913, ptr getelementptr (i8, ptr @".str.15.a negative mass", i64 0), i64 ptrtoint (ptr @".str.17.model/model.swift" to i64), i64 17, i8 2, i64 5, i32 0), !dbg !15
  unreachable, !dbg !15

47:                                               ; preds = %entry
  tail call void asm sideeffect "", "n"(i32 0) #3, !dbg !22
  tail call void @llvm.trap(), !dbg !22
  unreachable, !dbg !22

48:                                               ; preds = %13
  tail call void asm sideeffect "", "n"(i32 1) #3, !dbg !16
  tail call void @llvm.trap(), !dbg !16
  unreachable, !dbg !16
}

; Function Attrs: noinline
declare swiftcc void @"$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF"(i64, i64, i8, i64, ptr, i64, i64, i8, i64, i32) local_unnamed_addr #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.sqrt.f64(double)

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

; Function Attrs: cold noreturn nounwind memory(inaccessiblemem: write)
declare void @llvm.trap() #2

attributes #0 = { "frame-pointer"="all" "no-trapping-math"="true" "probe-stack"="__chkstk_darwin" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "tune-cpu"="generic" }
attributes #1 = { noinline "frame-pointer"="all" }
attributes #2 = { cold noreturn nounwind memory(inaccessiblemem: write) }
attributes #3 = { nounwind }

!llvm.module.flags = !{!0, !1, !2}
!llvm.dbg.cu = !{!3}
!swift.module.flags = !{!5}

!0 = !{i32 7, !"Dwarf Version", i32 4}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !{i32 8, !"PIC Level", i32 2}
!3 = distinct !DICompileUnit(language: DW_LANG_Swift, file: !4, producer: "Swift version 6.1 (swift-6.1-RELEASE)", isOptimized: true, runtimeVersion: 6, emissionKind: FullDebug)
!4 = !DIFile(filename: "model.swift", directory: ".")
!5 = !{!"standard-library", i1 false}
!6 = !DISubroutineType(types: !7)
!7 = !{}
!9 = distinct !DISubprogram(name: "energy", linkageName: "energy", scope: null, file: !4, line: 1, type: !6, flags: DIFlagArtificial, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !3, retainedNodes: !7)
!12 = !DILocation(line: 0, scope: !9)
!13 = distinct !DISubprogram(name: "energy", linkageName: "$s5modelAA6energyySdSPySdG_ACSitF", scope: null, file: !4, line: 2, type: !6, scopeLine: 2, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !3, retainedNodes: !7)
!14 = !DILocation(line: 4, column: 14, scope: !13)
!15 = !DILocation(line: 5, column: 24, scope: !13)
!16 = !DILocation(line: 9, column: 33, scope: !13)
!17 = !DILocation(line: 6, column: 18, scope: !13)
!18 = !DILocation(line: 8, column: 22, scope: !13)
!19 = !DILocation(line: 10, column: 19, scope: !13)
!20 = !DILocation(line: 12, column: 31, scope: !13)
!21 = !DILocation(line: 15, column: 5, scope: !13)
!22 = !DILocation(line: 0, scope: !13)
!23 = !{!"branch_weights", i32 1, i32 2000}
