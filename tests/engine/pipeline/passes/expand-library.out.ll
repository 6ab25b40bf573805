declare void @qsort(ptr, i64, i64, ptr)
declare i32 @compare(ptr, ptr)
define void @f(ptr %p, i64 %n) {
0:
  call void @irgrad.qsort.0(ptr %p, i64 %n, i64 8, ptr @compare)
  ret void
}
declare noalias ptr @malloc(i64)
declare void @free(ptr captures(none))
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1)
define internal void @irgrad.qsort.0(ptr %base, i64 %n, i64 %bytes, ptr %compare) {
entry:
  %total = mul i64 %n, 8
  %two = icmp ugt i64 %n, 1
  br i1 %two, label %start, label %out
start:
  %spare = call ptr @malloc(i64 %total)
  br label %pass
pass:
  %width = phi i64 [ 1, %start ], [ %double, %merged ]
  br label %pair
pair:
  %low = phi i64 [ 0, %pass ], [ %high, %paired ]
  %mid0 = add i64 %low, %width
  %mid = call i64 @llvm.umin.i64(i64 %mid0, i64 %n)
  %high0 = add i64 %mid, %width
  %high = call i64 @llvm.umin.i64(i64 %high0, i64 %n)
  br label %take
take:
  %k = phi i64 [ %low, %pair ], [ %k1, %taken ]
  %i = phi i64 [ %low, %pair ], [ %i1, %taken ]
  %j = phi i64 [ %mid, %pair ], [ %j1, %taken ]
  %left = icmp ult i64 %i, %mid
  %right = icmp ult i64 %j, %high
  %both = and i1 %left, %right
  br i1 %both, label %ask, label %taken
ask:
  %ia = mul i64 %i, 8
  %pa = getelementptr i8, ptr %base, i64 %ia
  %ja = mul i64 %j, 8
  %pb = getelementptr i8, ptr %base, i64 %ja
  %order = call i32 @compare(ptr %pa, ptr %pb) "irgrad-compares"
  %first = icmp sle i32 %order, 0
  br label %taken
taken:
  %is = phi i1 [ %left, %take ], [ %first, %ask ]
  %from = select i1 %is, i64 %i, i64 %j
  %froma = mul i64 %from, 8
  %fromp = getelementptr i8, ptr %base, i64 %froma
  %ka = mul i64 %k, 8
  %kp = getelementptr i8, ptr %spare, i64 %ka
  call void @llvm.memcpy.p0.p0.i64(ptr %kp, ptr %fromp, i64 8, i1 false)
  %i2 = add i64 %i, 1
  %j2 = add i64 %j, 1
  %i1 = select i1 %is, i64 %i2, i64 %i
  %j1 = select i1 %is, i64 %j, i64 %j2
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %high
  br i1 %more, label %take, label %paired
paired:
  %again = icmp ult i64 %high, %n
  br i1 %again, label %pair, label %merged
merged:
  call void @llvm.memcpy.p0.p0.i64(ptr %base, ptr %spare, i64 %total, i1 false)
  %double = shl i64 %width, 1
  %unsorted = icmp ult i64 %double, %n
  br i1 %unsorted, label %pass, label %done
done:
  call void @free(ptr %spare)
  br label %out
out:
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
