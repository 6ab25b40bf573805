; Copies of memory for what chunks of a loop add to it: of memory whose size nobody knows, and of arrays.
;
;     i64 irgrad_team_extent(ptr address, ptr low)   bytes around an address that can be written to, without a gap, and
;                                                    where they begin; 0 for null, or if the system does not say
;     ptr irgrad_team_pages(i64 bytes)               zeros, which take room where they are written to; null: there are none
;     ptr irgrad_team_touched(ptr memory, i64 bytes) a byte for each of its pages: bit 0, it has been written to. Null: all
;                                                    (Linux 6.7 tells by a scan, older ones page by page)
;     void irgrad_team_pages_free(ptr memory, i64 bytes, ptr touched)
;     void irgrad_team_add(ptr low, ptr own, i64 stride, i64 copies, i64 kind, i64 first, i64 last, ptr touched,
;                          i64 offset)               to each number of some pages what the copies have for it is added, in
;                                                    their order, where that is not zero: the rest may be no number
;     ptr irgrad_team_copies(i64 bytes)              zeros from the beginning of a page on, for copies of arrays; null for
;                                                    none, or if the system has none
;     void irgrad_team_copies_back(ptr memory)       they are zeros again, and kept for the next one who asks: fresh pages
;                                                    take longer than most loops, and only what is written to takes room
;     void irgrad_team_copies_drop(ptr memory)       they may be no zeros: given back to the system
;     i64 irgrad_team_copies_trim()                  what is kept is given back to the system; its bytes
;
; Copy c of what lies from `low` on begins at own + c stride, a multiple of pages, which is offset + c stride of all that
; `touched` tells of. kind: 1, the numbers are floats, not doubles; 2, each is added atomically; 3, both. Pages and flags are those of Linux on x86-64.

@irgrad.team.maps = private constant [16 x i8] c"/proc/self/maps\00", align 1

define linkonce_odr hidden i64 @irgrad_team_extent(ptr %v0, ptr writeonly %v1) {
start:
  %v3 = alloca [4096 x i8], align 16
  %nothing = icmp eq ptr %v0, null
  br i1 %nothing, label %v94, label %v2
v2:
  %v4 = tail call i32 (ptr, i32, ...) @open(ptr nonnull @irgrad.team.maps, i32 524288)
  %v5 = icmp slt i32 %v4, 0
  br i1 %v5, label %v94, label %v6
v6:
  call void @llvm.lifetime.start.p0(ptr nonnull %v3)
  %v7 = ptrtoint ptr %v0 to i64
  %v8 = call i64 @read(i32 %v4, ptr nonnull %v3, i64 4096)
  %v9 = icmp sgt i64 %v8, 0
  br i1 %v9, label %v10, label %v82
v10:
  %v11 = phi i64 [ %v80, %v79 ], [ %v8, %v6 ]
  %v12 = phi i64 [ %v71, %v79 ], [ 0, %v6 ]
  %v13 = phi i64 [ %v72, %v79 ], [ 0, %v6 ]
  %v14 = phi i64 [ %v73, %v79 ], [ 0, %v6 ]
  %v15 = phi i64 [ %v74, %v79 ], [ 0, %v6 ]
  %v16 = phi i64 [ %v75, %v79 ], [ 0, %v6 ]
  %v17 = phi i32 [ %v76, %v79 ], [ 0, %v6 ]
  br label %v18
v18:
  %v19 = phi i64 [ %v77, %v70 ], [ 0, %v10 ]
  %v20 = phi i32 [ %v76, %v70 ], [ %v17, %v10 ]
  %v21 = phi i64 [ %v75, %v70 ], [ %v16, %v10 ]
  %v22 = phi i64 [ %v74, %v70 ], [ %v15, %v10 ]
  %v23 = phi i64 [ %v73, %v70 ], [ %v14, %v10 ]
  %v24 = phi i64 [ %v72, %v70 ], [ %v13, %v10 ]
  %v25 = phi i64 [ %v71, %v70 ], [ %v12, %v10 ]
  %v26 = getelementptr inbounds nuw i8, ptr %v3, i64 %v19
  %v27 = load i8, ptr %v26, align 1
  %v28 = icmp eq i8 %v27, 10
  br i1 %v28, label %v70, label %v29
v29:
  %v30 = icmp sgt i32 %v20, 3
  br i1 %v30, label %v70, label %v31
v31:
  %v32 = icmp eq i32 %v20, 0
  %v33 = icmp eq i8 %v27, 45
  %v34 = and i1 %v32, %v33
  br i1 %v34, label %v70, label %v35
v35:
  %v36 = icmp eq i32 %v20, 1
  %v37 = icmp eq i8 %v27, 32
  %v38 = and i1 %v36, %v37
  br i1 %v38, label %v70, label %v39
v39:
  %v40 = icmp slt i32 %v20, 2
  br i1 %v40, label %v41, label %v56
v41:
  %v42 = shl i64 %v25, 4
  %v43 = sext i8 %v27 to i64
  %v44 = add i8 %v27, -48
  %v45 = icmp ult i8 %v44, 10
  br i1 %v45, label %v46, label %v48
v46:
  %v47 = add nsw i64 %v43, -48
  br label %v53
v48:
  %v49 = add i8 %v27, -97
  %v50 = icmp ult i8 %v49, 6
  %v51 = add nsw i64 %v43, -87
  %v52 = select i1 %v50, i64 %v51, i64 -1
  br label %v53
v53:
  %v54 = phi i64 [ %v47, %v46 ], [ %v52, %v48 ]
  %v55 = add i64 %v54, %v42
  br label %v70
v56:
  %v57 = icmp eq i32 %v20, 2
  br i1 %v57, label %v70, label %v58
v58:
  %v59 = icmp eq i8 %v27, 119
  br i1 %v59, label %v60, label %v66
v60:
  %v61 = icmp eq i64 %v24, %v21
  br i1 %v61, label %v70, label %v62
v62:
  %v63 = icmp ule i64 %v22, %v7
  %v64 = icmp ugt i64 %v21, %v7
  %v65 = select i1 %v63, i1 %v64, i1 false
  br i1 %v65, label %v82, label %v70
v66:
  %v67 = icmp ule i64 %v22, %v7
  %v68 = icmp ugt i64 %v21, %v7
  %v69 = select i1 %v67, i1 %v68, i1 false
  br i1 %v69, label %v82, label %v70
v70:
  %v71 = phi i64 [ 0, %v18 ], [ %v25, %v56 ], [ %v25, %v35 ], [ %v55, %v53 ], [ 0, %v31 ], [ %v25, %v29 ], [ %v25, %v66 ], [ %v25, %v60 ], [ %v25, %v62 ]
  %v72 = phi i64 [ %v24, %v18 ], [ %v24, %v56 ], [ %v24, %v35 ], [ %v24, %v53 ], [ %v25, %v31 ], [ %v24, %v29 ], [ %v24, %v66 ], [ %v21, %v60 ], [ %v24, %v62 ]
  %v73 = phi i64 [ %v23, %v18 ], [ %v23, %v56 ], [ %v25, %v35 ], [ %v23, %v53 ], [ %v23, %v31 ], [ %v23, %v29 ], [ %v23, %v66 ], [ %v23, %v60 ], [ %v23, %v62 ]
  %v74 = phi i64 [ %v22, %v18 ], [ %v22, %v56 ], [ %v22, %v35 ], [ %v22, %v53 ], [ %v22, %v31 ], [ %v22, %v29 ], [ 0, %v66 ], [ %v22, %v60 ], [ %v24, %v62 ]
  %v75 = phi i64 [ %v21, %v18 ], [ %v21, %v56 ], [ %v21, %v35 ], [ %v21, %v53 ], [ %v21, %v31 ], [ %v21, %v29 ], [ 0, %v66 ], [ %v23, %v60 ], [ %v23, %v62 ]
  %v76 = phi i32 [ 0, %v18 ], [ 3, %v56 ], [ 2, %v35 ], [ %v20, %v53 ], [ 1, %v31 ], [ %v20, %v29 ], [ 4, %v66 ], [ 4, %v60 ], [ 4, %v62 ]
  %v77 = add nuw nsw i64 %v19, 1
  %v78 = icmp eq i64 %v77, %v11
  br i1 %v78, label %v79, label %v18
v79:
  %v80 = call i64 @read(i32 %v4, ptr nonnull %v3, i64 4096)
  %v81 = icmp sgt i64 %v80, 0
  br i1 %v81, label %v10, label %v82
v82:
  %v83 = phi i64 [ 0, %v6 ], [ %v22, %v66 ], [ %v22, %v62 ], [ %v74, %v79 ]
  %v84 = phi i64 [ 0, %v6 ], [ %v21, %v66 ], [ %v21, %v62 ], [ %v75, %v79 ]
  %v85 = tail call i32 @close(i32 %v4)
  %v86 = icmp ule i64 %v83, %v7
  %v87 = icmp ugt i64 %v84, %v7
  %v88 = select i1 %v86, i1 %v87, i1 false
  br i1 %v88, label %v89, label %v92
v89:
  %v90 = inttoptr i64 %v83 to ptr
  store ptr %v90, ptr %v1, align 8
  %v91 = sub i64 %v84, %v83
  br label %v92
v92:
  %v93 = phi i64 [ %v91, %v89 ], [ 0, %v82 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %v3)
  br label %v94
v94:
  %v95 = phi i64 [ %v93, %v92 ], [ 0, %v2 ], [ 0, %start ]
  ret i64 %v95
}
declare void @llvm.lifetime.start.p0(ptr)
declare i32 @open(ptr readonly, i32, ...)
declare i64 @read(i32, ptr, i64)
declare void @llvm.lifetime.end.p0(ptr)
declare i32 @close(i32)

define linkonce_odr hidden ptr @irgrad_team_pages(i64 %v0) {
entry:
  %v2 = tail call ptr @mmap(ptr null, i64 %v0, i32 3, i32 16418, i32 -1, i64 0)
  %v3 = icmp eq ptr %v2, inttoptr (i64 -1 to ptr)
  %v4 = select i1 %v3, ptr null, ptr %v2
  ret ptr %v4
}
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)

@irgrad.team.pagemap = private constant [19 x i8] c"/proc/self/pagemap\00", align 1
define linkonce_odr hidden ptr @irgrad_team_touched(ptr %v0, i64 %v1)  {
entry:
  %v3 = alloca [64 x { i64, i64, i64 }], align 16
  %v4 = alloca { i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64 }, align 8
  %v5 = sdiv i64 %v1, 4096
  %v6 = add nsw i64 %v5, 1
  %v7 = tail call noalias ptr @calloc(i64 %v6, i64 1)
  %v8 = icmp eq ptr %v7, null
  br i1 %v8, label %v68, label %v9
v9:
  %v10 = tail call i32 (ptr, i32, ...) @open(ptr nonnull @irgrad.team.pagemap, i32 524288)
  %v11 = icmp sgt i32 %v10, -1
  br i1 %v11, label %v12, label %v64
v12:
  call void @llvm.lifetime.start.p0(ptr nonnull %v3)
  call void @llvm.lifetime.start.p0(ptr nonnull %v4)
  %v13 = getelementptr inbounds nuw i8, ptr %v4, i64 8
  call void @llvm.memset.p0.i64(ptr nonnull align 8 dereferenceable(72) %v13, i8 0, i64 72, i1 false)
  store i64 96, ptr %v4, align 8
  %v14 = ptrtoint ptr %v0 to i64
  %v15 = getelementptr inbounds nuw i8, ptr %v4, i64 16
  store i64 %v14, ptr %v15, align 8
  %v16 = add i64 %v1, %v14
  %v17 = getelementptr inbounds nuw i8, ptr %v4, i64 24
  store i64 %v16, ptr %v17, align 8
  %v18 = ptrtoint ptr %v3 to i64
  %v19 = getelementptr inbounds nuw i8, ptr %v4, i64 40
  store i64 %v18, ptr %v19, align 8
  %v20 = getelementptr inbounds nuw i8, ptr %v4, i64 48
  store i64 64, ptr %v20, align 8
  %v21 = getelementptr inbounds nuw i8, ptr %v4, i64 88
  store i64 24, ptr %v21, align 8
  %v22 = getelementptr inbounds nuw i8, ptr %v4, i64 80
  store i64 24, ptr %v22, align 8
  %v23 = call i32 (i32, i64, ...) @ioctl(i32 %v10, i64 3227543056, ptr nonnull %v4)
  %v24 = icmp sgt i32 %v23, -1
  br i1 %v24, label %v25, label %v60
v25:
  %v26 = getelementptr inbounds nuw i8, ptr %v4, i64 32
  br label %v27
v27:
  %v28 = phi i32 [ %v23, %v25 ], [ %v53, %v52 ]
  %v29 = icmp eq i32 %v28, 0
  br i1 %v29, label %v32, label %v30
v30:
  %v31 = zext nneg i32 %v28 to i64
  br label %v39
v32:
  %v33 = load i64, ptr %v26, align 8
  %v34 = load i64, ptr %v17, align 8
  %v35 = icmp ult i64 %v33, %v34
  %v36 = load i64, ptr %v15, align 8
  %v37 = icmp ugt i64 %v33, %v36
  %v38 = select i1 %v35, i1 %v37, i1 false
  br i1 %v38, label %v52, label %v55
v39:
  %v40 = phi i64 [ 0, %v30 ], [ %v50, %v39 ]
  %v41 = getelementptr inbounds nuw { i64, i64, i64 }, ptr %v3, i64 %v40
  %v42 = load i64, ptr %v41, align 8
  %v43 = sub i64 %v42, %v14
  %v44 = lshr i64 %v43, 12
  %v45 = getelementptr inbounds nuw i8, ptr %v7, i64 %v44
  %v46 = getelementptr inbounds nuw i8, ptr %v41, i64 8
  %v47 = load i64, ptr %v46, align 8
  %v48 = sub i64 %v47, %v42
  %v49 = lshr i64 %v48, 12
  call void @llvm.memset.p0.i64(ptr nonnull align 1 %v45, i8 1, i64 %v49, i1 false)
  %v50 = add nuw nsw i64 %v40, 1
  %v51 = icmp eq i64 %v50, %v31
  br i1 %v51, label %v32, label %v39
v52:
  store i64 %v33, ptr %v15, align 8
  %v53 = call i32 (i32, i64, ...) @ioctl(i32 %v10, i64 3227543056, ptr nonnull %v4)
  %v54 = icmp sgt i32 %v53, -1
  br i1 %v54, label %v27, label %v60
v55:
  %v56 = call i32 @close(i32 %v10)
  %v57 = load i64, ptr %v26, align 8
  %v58 = load i64, ptr %v17, align 8
  %v59 = icmp ult i64 %v57, %v58
  br i1 %v59, label %v62, label %v63
v60:
  %v61 = call i32 @close(i32 %v10)
  br label %v62
v62:
  call void @llvm.lifetime.end.p0(ptr nonnull %v4)
  call void @llvm.lifetime.end.p0(ptr nonnull %v3)
  br label %v64
v63:
  call void @llvm.lifetime.end.p0(ptr nonnull %v4)
  call void @llvm.lifetime.end.p0(ptr nonnull %v3)
  br label %v68
v64:
  %v65 = call i1 @irgrad_team_present(i64 %v5, ptr %v0, ptr nonnull %v7)
  br i1 %v65, label %v68, label %v67
v67:
  call void @llvm.memset.p0.i64(ptr nonnull align 1 %v7, i8 1, i64 %v5, i1 false)
  br label %v68
v68:
  ret ptr %v7
}

; the same of each page, 512 at a time; false if the system does not say. A word of a page has bit 63 where it is there,
; bit 62 where it was written to a disk meanwhile
define linkonce_odr hidden i1 @irgrad_team_present(i64 %pages, ptr %memory, ptr %flags) {
entry:
  %words = alloca [512 x i64], align 16
  %file = call i32 (ptr, i32, ...) @open(ptr nonnull @irgrad.team.pagemap, i32 524288)
  %opened = icmp sgt i32 %file, -1
  br i1 %opened, label %begin, label %unknown
begin:
  %address = ptrtoint ptr %memory to i64
  %number = lshr i64 %address, 12
  br label %some
some:
  %first = phi i64 [ 0, %begin ], [ %behind, %done ]
  %left = sub i64 %pages, %first
  %few = call i64 @llvm.umin.i64(i64 %left, i64 512)
  %bytes = shl i64 %few, 3
  %page = add i64 %number, %first
  %place = shl i64 %page, 3
  %got = call i64 @pread(i32 %file, ptr %words, i64 %bytes, i64 %place)
  %whole = icmp eq i64 %got, %bytes
  br i1 %whole, label %each, label %closed
each:
  %n = phi i64 [ 0, %some ], [ %next, %each ]
  %wordp = getelementptr i64, ptr %words, i64 %n
  %word = load i64, ptr %wordp, align 8
  %there = icmp ugt i64 %word, 4611686018427387903
  %flag = zext i1 %there to i8
  %index = add i64 %first, %n
  %flagp = getelementptr i8, ptr %flags, i64 %index
  store i8 %flag, ptr %flagp, align 1
  %next = add nuw i64 %n, 1
  %again = icmp ult i64 %next, %few
  br i1 %again, label %each, label %done
done:
  %behind = add i64 %first, %few
  %more = icmp ult i64 %behind, %pages
  br i1 %more, label %some, label %closed
closed:
  %all = phi i1 [ false, %some ], [ true, %done ]
  %unused = call i32 @close(i32 %file)
  ret i1 %all
unknown:
  ret i1 false
}
declare i64 @pread(i32, ptr, i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr writeonly, i8, i64, i1 immarg)

define linkonce_odr hidden void @irgrad_team_pages_free(ptr %memory, i64 %bytes, ptr %touched) {
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %some
some:
  %unused = tail call i32 @munmap(ptr %memory, i64 %bytes)
  tail call void @free(ptr %touched)
  br label %done
done:
  ret void
}
declare i32 @munmap(ptr, i64)
declare void @free(ptr allocptr)

define linkonce_odr hidden void @irgrad_team_add(ptr %v0, ptr readonly %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v6, i64 %v7, ptr readonly %v8, i64 %v9) {
entry:
  %v12 = icmp slt i64 %v6, %v7
  br i1 %v12, label %v13, label %v25
v13:
  %v15 = icmp sgt i64 %v3, 0
  %v16 = icmp eq ptr %v8, null
  %single = and i64 %v4, 1
  %v17 = icmp eq i64 %single, 0
  %atomic = icmp ugt i64 %v4, 1
  br label %v18
v18:
  %v19 = phi i64 [ %v6, %v13 ], [ %v27, %v26 ]
  %v20 = getelementptr i8, ptr %v8, i64 %v19
  br i1 %v15, label %v21, label %v26
v21:
  %v22 = shl nsw i64 %v19, 12
  %v23 = getelementptr i8, ptr %v0, i64 %v22
  %v24 = getelementptr i8, ptr %v1, i64 %v22
  br label %v29
v25:
  ret void
v26:
  %v27 = add nsw i64 %v19, 1
  %v28 = icmp eq i64 %v27, %v7
  br i1 %v28, label %v25, label %v18
v29:
  %v30 = phi i64 [ 0, %v21 ], [ %v68, %v67 ]
  %v31 = mul nsw i64 %v30, %v2
  br i1 %v16, label %v39, label %v32
v32:
  %v33 = add nsw i64 %v31, %v9
  %v34 = sdiv i64 %v33, 4096
  %v35 = getelementptr i8, ptr %v20, i64 %v34
  %v36 = load i8, ptr %v35, align 1
  %v37 = and i8 %v36, 1
  %v38 = icmp eq i8 %v37, 0
  br i1 %v38, label %v67, label %v39
v39:
  %v40 = getelementptr i8, ptr %v24, i64 %v31
  br i1 %v17, label %v54, label %v41
v41:
  %v42 = phi i64 [ %v52, %v51 ], [ 0, %v39 ]
  %v43 = getelementptr inbounds nuw i32, ptr %v40, i64 %v42
  %v44 = load i32, ptr %v43, align 4
  %v45 = icmp eq i32 %v44, 0
  br i1 %v45, label %v51, label %v46
v46:
  %v47 = bitcast i32 %v44 to float
  %v48 = getelementptr inbounds nuw float, ptr %v23, i64 %v42
  br i1 %atomic, label %singles, label %single.plain
singles:
  %before1 = atomicrmw fadd ptr %v48, float %v47 monotonic, align 4
  br label %v51
single.plain:
  %v49 = load float, ptr %v48, align 4
  %v50 = fadd float %v49, %v47
  store float %v50, ptr %v48, align 4
  br label %v51
v51:
  %v52 = add nuw nsw i64 %v42, 1
  %v53 = icmp eq i64 %v52, 1024
  br i1 %v53, label %v67, label %v41
v54:
  %v55 = phi i64 [ %v65, %v64 ], [ 0, %v39 ]
  %v56 = getelementptr inbounds nuw i64, ptr %v40, i64 %v55
  %v57 = load i64, ptr %v56, align 8
  %v58 = icmp eq i64 %v57, 0
  br i1 %v58, label %v64, label %v59
v59:
  %v60 = bitcast i64 %v57 to double
  %v61 = getelementptr inbounds nuw double, ptr %v23, i64 %v55
  br i1 %atomic, label %doubles, label %double.plain
doubles:
  %before2 = atomicrmw fadd ptr %v61, double %v60 monotonic, align 8
  br label %v64
double.plain:
  %v62 = load double, ptr %v61, align 8
  %v63 = fadd double %v62, %v60
  store double %v63, ptr %v61, align 8
  br label %v64
v64:
  %v65 = add nuw nsw i64 %v55, 1
  %v66 = icmp eq i64 %v65, 512
  br i1 %v66, label %v67, label %v54
v67:
  %v68 = add nuw nsw i64 %v30, 1
  %v69 = icmp eq i64 %v68, %v3
  br i1 %v69, label %v26, label %v29
}
declare noalias ptr @calloc(i64, i64)
declare i32 @ioctl(i32, i64, ...)

; what is kept: its bytes, in a page in front of it
@irgrad.team.kept = linkonce_odr hidden global ptr null, align 8

define linkonce_odr hidden ptr @irgrad_team_copies(i64 %bytes) {
entry:
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %nothing, label %take
take:
  %kept = atomicrmw xchg ptr @irgrad.team.kept, ptr null acq_rel, align 8
  %some = icmp ne ptr %kept, null
  br i1 %some, label %look, label %fresh
look:
  %size = load i64, ptr %kept, align 8
  %enough = icmp uge i64 %size, %bytes
  br i1 %enough, label %use, label %small
use:
  %again = getelementptr i8, ptr %kept, i64 4096
  ret ptr %again
small:
  %old = getelementptr i8, ptr %kept, i64 4096
  call void @irgrad_team_copies_drop(ptr %old)
  br label %fresh
fresh:
  %all = add i64 %bytes, 4096
  %new = call ptr @mmap(ptr null, i64 %all, i32 3, i32 16418, i32 -1, i64 0)
  %failed = icmp eq ptr %new, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %nothing, label %made
made:
  %unused = call i32 @madvise(ptr %new, i64 %all, i32 15) ; no huge pages: few bytes of one may be written to
  store i64 %bytes, ptr %new, align 8
  %memory = getelementptr i8, ptr %new, i64 4096
  ret ptr %memory
nothing:
  ret ptr null
}
declare i32 @madvise(ptr, i64, i32)

define linkonce_odr hidden void @irgrad_team_copies_back(ptr %memory) {
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %some
some:
  %head = getelementptr i8, ptr %memory, i64 -4096
  %before = atomicrmw xchg ptr @irgrad.team.kept, ptr %head acq_rel, align 8
  %only = icmp eq ptr %before, null
  br i1 %only, label %done, label %two
two:
  %other = getelementptr i8, ptr %before, i64 4096
  call void @irgrad_team_copies_drop(ptr %other)
  br label %done
done:
  ret void
}

define linkonce_odr hidden void @irgrad_team_copies_drop(ptr %memory) {
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %some
some:
  %head = getelementptr i8, ptr %memory, i64 -4096
  %size = load i64, ptr %head, align 8
  %all = add i64 %size, 4096
  %unused = call i32 @munmap(ptr %head, i64 %all)
  br label %done
done:
  ret void
}

define linkonce_odr hidden i64 @irgrad_team_copies_trim() {
entry:
  %kept = atomicrmw xchg ptr @irgrad.team.kept, ptr null acq_rel, align 8
  %none = icmp eq ptr %kept, null
  br i1 %none, label %nothing, label %some
some:
  %size = load i64, ptr %kept, align 8
  %memory = getelementptr i8, ptr %kept, i64 4096
  call void @irgrad_team_copies_drop(ptr %memory)
  ret i64 %size
nothing:
  ret i64 0
}
