; In programs of C: a tape that passes half of the memory that was free when it began to grow is told of, once.

@irgrad.tape.half = internal global i64 0, align 8 ; that half; 0: not asked for; -1: not known, or told
@irgrad.tape.meminfo = private unnamed_addr constant [14 x i8] c"/proc/meminfo\00"
@irgrad.tape.available = private unnamed_addr constant [14 x i8] c"MemAvailable:\00"
@irgrad.tape.largely = private unnamed_addr constant [187 x i8] c"irgrad: warning: the tape of a derivative takes more than %lld bytes, half of the memory that was free, in %s; with --tape-memory=512MB loops that can run again keep states in its place\0A\00"
declare i32 @open(ptr, i32, ...)
declare i64 @read(i32, ptr, i64)
declare i32 @close(i32)
declare ptr @strstr(ptr, ptr)
declare i64 @strtoll(ptr, ptr, i32)

define internal void @irgrad.tape.large(ptr %t, i64 %bytes) noinline optnone cold nounwind {
entry:
  %text = alloca [512 x i8], align 16
  %small = icmp ult i64 %bytes, 16777216
  br i1 %small, label %out, label %look
look:
  %known = load atomic i64, ptr @irgrad.tape.half monotonic, align 8
  %first = icmp eq i64 %known, 0
  br i1 %first, label %ask, label %compare
ask:
  %file = call i32 (ptr, i32, ...) @open(ptr @irgrad.tape.meminfo, i32 0)
  %missing = icmp slt i32 %file, 0
  br i1 %missing, label %unknown, label %read
read:
  %count = call i64 @read(i32 %file, ptr %text, i64 511)
  %closed = call i32 @close(i32 %file)
  %failed = icmp slt i64 %count, 0
  br i1 %failed, label %unknown, label %search
search:
  %end = getelementptr i8, ptr %text, i64 %count
  store i8 0, ptr %end, align 1
  %word = call ptr @strstr(ptr %text, ptr @irgrad.tape.available)
  %none = icmp eq ptr %word, null
  br i1 %none, label %unknown, label %number
number:
  %digits = getelementptr i8, ptr %word, i64 13
  %kilobytes = call i64 @strtoll(ptr %digits, ptr null, i32 10)
  %found = mul i64 %kilobytes, 512
  br label %store
unknown:
  br label %store
store:
  %half = phi i64 [ %found, %number ], [ -1, %unknown ]
  store atomic i64 %half, ptr @irgrad.tape.half monotonic, align 8
  br label %compare
compare:
  %limit = phi i64 [ %known, %look ], [ %half, %store ]
  %over = icmp ugt i64 %bytes, %limit
  br i1 %over, label %once, label %out
once:
  %old = atomicrmw xchg ptr @irgrad.tape.half, i64 -1 monotonic, align 8
  %told = icmp eq i64 %old, -1
  br i1 %told, label %out, label %tell
tell:
  %wherep = getelementptr i8, ptr %t, i64 56
  %where = load ptr, ptr %wherep, align 8
  %nowhere = icmp eq ptr %where, null
  %place = select i1 %nowhere, ptr @irgrad.tape.nowhere, ptr %where
  %size = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr @irgrad.tape.largely, i64 %limit, ptr %place)
  %most = call i32 @llvm.smin.i32(i32 %size, i32 511)
  %length = sext i32 %most to i64
  %said = call i64 @write(i32 2, ptr %text, i64 %length)
  br label %out
out:
  ret void
}
declare i32 @llvm.smin.i32(i32, i32)
