; Exceptions that nothing in a kernel catches end the call, as a tape does for which there is no memory (`arena.ll`): the
; record has -6 in place of the iterations, and in place of the bytes the address of a text, "`type`: what it says",
; which whoever gets the record frees.

@irgrad.tape.said = private unnamed_addr constant [9 x i8] c"`%s`%s%s\00"
@irgrad.tape.colon = private unnamed_addr constant [3 x i8] c": \00"
@irgrad.tape.empty = private unnamed_addr constant [1 x i8] zeroinitializer
declare ptr @malloc(i64)
declare i64 @strlen(ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @vsnprintf(ptr, i64, ptr, ptr)
declare void @llvm.va_start.p0(ptr)
declare void @irgrad.tape.fail(i64, i64, i64, ptr)

; The text; it is cut after 4000 bytes. A type without a text says nothing more.
define internal i64 @irgrad.tape.exception(ptr %type, ptr %text) noinline optnone cold nounwind {
entry:
  %none = icmp eq ptr %text, null
  %rest = select i1 %none, ptr @irgrad.tape.empty, ptr %text
  %colon = select i1 %none, ptr @irgrad.tape.empty, ptr @irgrad.tape.colon
  %a = call i64 @strlen(ptr %type)
  %b = call i64 @strlen(ptr %rest)
  %sum = add i64 %a, %b
  %all = add i64 %sum, 8
  %long = icmp ugt i64 %all, 4000
  %size = select i1 %long, i64 4000, i64 %all
  %said = call ptr @malloc(i64 %size)
  %full = icmp eq ptr %said, null
  br i1 %full, label %out, label %write
write:
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %said, i64 %size, ptr @irgrad.tape.said, ptr %type, ptr %colon, ptr %rest)
  br label %out
out:
  %number = ptrtoint ptr %said to i64
  ret i64 %number
}

; %offset: where in the object its std::exception begins; -1: it has none; -2: %thing is the text itself
; %end: the destructor, or null; %release: gives the memory of the object back, or null
define internal void @irgrad.tape.throws(ptr %type, ptr %thing, i64 %offset, ptr %end, ptr %release, ptr %where) noinline optnone cold noreturn {
entry:
  switch i64 %offset, label %asks [ i64 -1, label %nothing
                                    i64 -2, label %said ]
asks:
  %object = getelementptr i8, ptr %thing, i64 %offset
  %table = load ptr, ptr %object, align 8
  %slot = getelementptr i8, ptr %table, i64 16 ; behind the two destructors
  %what = load ptr, ptr %slot, align 8
  %answer = call ptr %what(ptr %object)
  br label %said
nothing:
  br label %said
said:
  %text = phi ptr [ %answer, %asks ], [ null, %nothing ], [ %thing, %entry ]
  %told = call i64 @irgrad.tape.exception(ptr %type, ptr %text)
  %plain = icmp eq ptr %end, null
  br i1 %plain, label %gone, label %destroy
destroy:
  call void %end(ptr %thing)
  br label %gone
gone:
  %kept = icmp eq ptr %release, null
  br i1 %kept, label %fails, label %frees
frees:
  call void %release(ptr %thing)
  br label %fails
fails:
  call void @irgrad.tape.fail(i64 %told, i64 0, i64 -6, ptr %where)
  unreachable
}

; of a text that is put together
define internal void @irgrad.tape.throws_format(ptr %type, ptr %where, ptr %form, ...) noinline optnone cold noreturn {
entry:
  %list = alloca [64 x i8], align 16
  %buffer = alloca [1024 x i8], align 16
  call void @llvm.va_start.p0(ptr %list)
  %n = call i32 @vsnprintf(ptr %buffer, i64 1024, ptr %form, ptr %list)
  call void @irgrad.tape.throws(ptr %type, ptr %buffer, i64 -2, ptr null, ptr null, ptr %where)
  unreachable
}
