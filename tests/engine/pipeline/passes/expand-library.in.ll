declare void @qsort(ptr, i64, i64, ptr)
declare i32 @compare(ptr, ptr)
define void @f(ptr %p, i64 %n) {
  call void @qsort(ptr %p, i64 %n, i64 8, ptr @compare)
  ret void
}
