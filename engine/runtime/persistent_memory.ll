; Shadow memory that lives across calls, like the memory of the program that it belongs to (see `persistent_memory.py`).
;
;     block   { next, bytes, base, owner, fields, ... } in the 64 bytes before the memory; base: what is freed; the rest
;             tells which memory it is beside (interop/loaders/found_memory.c)
;     fields  { period, count, [count x { first byte, bytes }] }: the floats in each period, null where all is floats
;
; The program's own use of such memory is for one thread at a time; the list survives any.

@irgrad.kept.first = internal global ptr null, align 8
@irgrad.kept.held = internal global i32 0, align 4
declare noalias ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @abort() noreturn
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @irgrad.kept.hold() noinline nounwind {
entry:
  br label %ask
ask:
  %before = atomicrmw xchg ptr @irgrad.kept.held, i32 1 acquire, align 4
  %free = icmp eq i32 %before, 0
  br i1 %free, label %out, label %ask
out:
  ret void
}

; zeroed memory; %owner: the derivative that its floats are cleared for, null for memory that is never cleared
define internal noalias ptr @irgrad.kept.new(ptr %owner, ptr %fields, i64 %bytes, i64 %align) noinline nounwind {
entry:
  %head = call i64 @llvm.umax.i64(i64 %align, i64 64)
  %two = shl i64 %head, 1
  %sum = add i64 %bytes, %two
  %less = sub i64 %sum, 1
  %mask = sub i64 0, %head
  %whole = and i64 %less, %mask
  %base = call ptr @aligned_alloc(i64 %head, i64 %whole)
  %failed = icmp eq ptr %base, null
  br i1 %failed, label %die, label %made
die:
  call void @abort()
  unreachable
made:
  %memory = getelementptr i8, ptr %base, i64 %head
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %bytes, i1 false)
  %block = getelementptr i8, ptr %memory, i64 -64
  %bytesp = getelementptr i8, ptr %block, i64 8
  store i64 %bytes, ptr %bytesp, align 8
  %basep = getelementptr i8, ptr %block, i64 16
  store ptr %base, ptr %basep, align 8
  %ownerp = getelementptr i8, ptr %block, i64 24
  store ptr %owner, ptr %ownerp, align 8
  %fieldsp = getelementptr i8, ptr %block, i64 32
  store ptr %fields, ptr %fieldsp, align 8
  %asidep = getelementptr i8, ptr %block, i64 40
  store ptr null, ptr %asidep, align 8
  call void @irgrad.kept.hold()
  %first = load ptr, ptr @irgrad.kept.first, align 8
  store ptr %first, ptr %block, align 8
  store ptr %block, ptr @irgrad.kept.first, align 8
  store atomic i32 0, ptr @irgrad.kept.held release, align 4
  ret ptr %memory
}

; nothing happens for memory of another kind
define internal void @irgrad.kept.free(ptr %memory) noinline nounwind {
entry:
  %wanted = getelementptr i8, ptr %memory, i64 -64
  call void @irgrad.kept.hold()
  br label %look
look:
  %link = phi ptr [ @irgrad.kept.first, %entry ], [ %block, %other ]
  %block = load ptr, ptr %link, align 8
  %end = icmp eq ptr %block, null
  br i1 %end, label %out, label %some
some:
  %found = icmp eq ptr %block, %wanted
  br i1 %found, label %take, label %other
other:
  br label %look
take:
  %next = load ptr, ptr %block, align 8
  store ptr %next, ptr %link, align 8
  %basep = getelementptr i8, ptr %block, i64 16
  %base = load ptr, ptr %basep, align 8
  call void @free(ptr %base)
  br label %out
out:
  store atomic i32 0, ptr @irgrad.kept.held release, align 4
  ret void
}

define internal void @irgrad.kept.clear(ptr %owner) noinline nounwind {
entry:
  call void @irgrad.kept.hold()
  %first = load ptr, ptr @irgrad.kept.first, align 8
  br label %look
look:
  %block = phi ptr [ %first, %entry ], [ %next, %done ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %out, label %some
some:
  %next = load ptr, ptr %block, align 8
  %ownerp = getelementptr i8, ptr %block, i64 24
  %of = load ptr, ptr %ownerp, align 8
  %ours = icmp eq ptr %of, %owner
  br i1 %ours, label %clear, label %done
clear:
  %bytesp = getelementptr i8, ptr %block, i64 8
  %bytes = load i64, ptr %bytesp, align 8
  %memory = getelementptr i8, ptr %block, i64 64
  %fieldsp = getelementptr i8, ptr %block, i64 32
  %fields = load ptr, ptr %fieldsp, align 8
  %plain = icmp eq ptr %fields, null
  br i1 %plain, label %whole, label %mixed
whole:
  call void @llvm.memset.p0.i64(ptr %memory, i8 0, i64 %bytes, i1 false)
  br label %done
mixed:
  %period = load i64, ptr %fields, align 8
  %countp = getelementptr i8, ptr %fields, i64 8
  %count = load i64, ptr %countp, align 8
  br label %element
element:
  %start = phi i64 [ 0, %mixed ], [ %further, %over ]
  %inside = icmp ult i64 %start, %bytes
  br i1 %inside, label %field, label %done
field:
  %i = phi i64 [ 0, %element ], [ %i1, %next.field ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %over
one:
  %words = shl i64 %i, 4
  %places = getelementptr i8, ptr %fields, i64 16
  %placep = getelementptr i8, ptr %places, i64 %words
  %place = load i64, ptr %placep, align 8
  %sizep = getelementptr i8, ptr %placep, i64 8
  %size = load i64, ptr %sizep, align 8
  %first.byte = add i64 %start, %place
  %last = add i64 %first.byte, %size
  %fits = icmp ule i64 %last, %bytes
  br i1 %fits, label %zero, label %next.field
zero:
  %at = getelementptr i8, ptr %memory, i64 %first.byte
  call void @llvm.memset.p0.i64(ptr %at, i8 0, i64 %size, i1 false)
  br label %next.field
next.field:
  %i1 = add i64 %i, 1
  br label %field
over:
  %further = add i64 %start, %period
  br label %element
done:
  br label %look
out:
  store atomic i32 0, ptr @irgrad.kept.held release, align 4
  ret void
}
