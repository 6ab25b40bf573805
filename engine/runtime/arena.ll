; The arena of the tape: memory is handed out by moving a pointer through chunks, and freed all at once.
;
; It then keeps its memory for the next call: pages fresh from the system are the slowest memory there is. Arenas live
; in a pool of the compiled unit and are taken and given back by atomic exchange, so calls may run on any number of
; threads.
;
;     arena   { top, end, chunk, pending, total, hint, count, where, guard, next, children }
;             chunk: the newest; pending: what is released at the end; total: bytes of all chunks; hint: bytes that the
;             last call needed; count, where: iterations and place of the loop that the memory is for (-1, null: not
;             known; -2: there is memory, but the loop ended in another way; -6: an exception, whose text is at `bytes`); guard: of the call that uses it, 1 for an arena that is in no call and not in the pool; next:
;             another arena of the unit; children: null, or 16 arenas of parts that other threads may run
;     chunk   { next, size }, data at +64
;     guard   a jmp_buf, then at +512 { the guard before, cell, bytes, total, count, where }
;
; Where the system gives no more memory, the call ends: control returns to its guard (`arena.py` writes functions that
; have one), what the call held of arenas is released, and the caller gets a record,
;
;     failure { bytes that were asked for, bytes held before, count, where, whether it is to be freed }
;
; What runs once in a while is `optnone`: LLVM's pipeline over it was a fifth of the machine-code time of the arena.
;
; Guards are found by thread, in a table by the address of its errno. Without one, in programs of C, a message is written
; and the process ends.

@irgrad.tape.pool = internal global [64 x ptr] zeroinitializer, align 64
@irgrad_tape_peak = internal global i64 0, align 8
@irgrad_tape_limit = internal global i64 -1, align 8 ; bytes that one arena may hold
@irgrad.tape.every = internal global ptr null, align 8
@irgrad.tape.guards = internal global [256 x { ptr, ptr }] zeroinitializer, align 64
@irgrad.tape.last = internal global [5 x i64] zeroinitializer, align 8
@irgrad.tape.told = private unnamed_addr constant [82 x i8] c"irgrad: no memory for the tape: %lld bytes besides the %lld that it holds, in %s\0A\00"
@irgrad.tape.far = private unnamed_addr constant [80 x i8] c"irgrad: a pointer moves by the distance of two allocations, computed at %.400s\0A\00"
@irgrad.tape.outside = private unnamed_addr constant [77 x i8] c"irgrad: an index leaves the array that is a member of its struct, at %.400s\0A\00"
@irgrad.tape.lostway = private unnamed_addr constant [75 x i8] c"irgrad: a pointer leads where no analysis has seen that it may, at %.400s\0A\00"
@irgrad.tape.threw = private unnamed_addr constant [52 x i8] c"irgrad: nothing catches what is thrown, %.200s: %s\0A\00"
@irgrad.tape.nowhere = private unnamed_addr constant [13 x i8] c"its own code\00"
declare noalias ptr @malloc(i64)
declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @abort() noreturn
declare ptr @__errno_location()
declare i64 @write(i32, ptr, i64)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @_setjmp(ptr) returns_twice
declare void @longjmp(ptr, i32) noreturn
declare i32 @llvm.umin.i32(i32, i32)

define internal noalias ptr @irgrad.tape.acquire() noinline nounwind {
entry:
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %seen = load atomic ptr, ptr %cell monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %again, label %take
take:
  %got = atomicrmw xchg ptr %cell, ptr null acq_rel, align 8
  %lost = icmp eq ptr %got, null
  br i1 %lost, label %again, label %found
found:
  %foundp = getelementptr i8, ptr %got, i64 64
  %owner = call ptr @irgrad.tape.guard_of()
  store atomic ptr %owner, ptr %foundp monotonic, align 8 ; others look at all arenas for an idle one
  ret ptr %got
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %scan, label %spare
spare:
  %every = load atomic ptr, ptr @irgrad.tape.every acquire, align 8
  br label %ask
ask:
  %idle = phi ptr [ %every, %spare ], [ %after, %refused ]
  %end = icmp eq ptr %idle, null
  br i1 %end, label %fresh, label %try
try:
  %idlep = getelementptr i8, ptr %idle, i64 64
  %taken = cmpxchg ptr %idlep, ptr inttoptr (i64 1 to ptr), ptr null acq_rel monotonic, align 8
  %ours = extractvalue { ptr, i1 } %taken, 1
  br i1 %ours, label %known, label %refused
refused:
  %afterp = getelementptr i8, ptr %idle, i64 72
  %after = load ptr, ptr %afterp, align 8
  br label %ask
known:
  %holder = call ptr @irgrad.tape.guard_of()
  store atomic ptr %holder, ptr %idlep monotonic, align 8
  ret ptr %idle
fresh:
  %new = call ptr @calloc(i64 1, i64 88)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %die, label %made
die:
  call void @irgrad.tape.fail(i64 88, i64 0, i64 -1, ptr null)
  unreachable
made:
  %guardp = getelementptr i8, ptr %new, i64 64
  %guard = call ptr @irgrad.tape.guard_of()
  store atomic ptr %guard, ptr %guardp monotonic, align 8
  %countp = getelementptr i8, ptr %new, i64 48
  store i64 -1, ptr %countp, align 8
  %nextp = getelementptr i8, ptr %new, i64 72
  br label %join
join:
  %head = load atomic ptr, ptr @irgrad.tape.every acquire, align 8
  store ptr %head, ptr %nextp, align 8
  %swap = cmpxchg ptr @irgrad.tape.every, ptr %head, ptr %new acq_rel monotonic, align 8
  %joined = extractvalue { ptr, i1 } %swap, 1
  br i1 %joined, label %out, label %join
out:
  ret ptr %new
}

; the memory that is asked for next is for %count iterations of the loop at %where
define internal void @irgrad.tape.at(ptr %t, i64 %count, ptr %where) alwaysinline nounwind {
  %countp = getelementptr i8, ptr %t, i64 48
  store i64 %count, ptr %countp, align 8
  %wherep = getelementptr i8, ptr %t, i64 56
  store ptr %where, ptr %wherep, align 8
  ret void
}

; the program found no memory, because the tape holds it: what the program frees is only released at the end
define internal void @irgrad.tape.need(ptr %t, i1 %missing, i64 %size) alwaysinline nounwind {
entry:
  br i1 %missing, label %look, label %out
look:
  %totalp = getelementptr i8, ptr %t, i64 32
  %total = load i64, ptr %totalp, align 8
  %held = icmp ne i64 %total, 0
  br i1 %held, label %die, label %out
die:
  call void @irgrad.tape.fail(i64 %size, i64 %total, i64 -1, ptr null)
  unreachable
out:
  ret void
}

; the cell of this thread among the guards: its own, or the first that is free; null where none is
define internal ptr @irgrad.tape.cell() noinline nounwind {
entry:
  %thread = call ptr @__errno_location()
  %number = ptrtoint ptr %thread to i64
  %high = lshr i64 %number, 12
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %sum = add i64 %high, %i
  %at = and i64 %sum, 255
  %cell = getelementptr { ptr, ptr }, ptr @irgrad.tape.guards, i64 %at
  %seen = load atomic ptr, ptr %cell monotonic, align 8
  %mine = icmp eq ptr %seen, %thread
  br i1 %mine, label %out, label %empty
empty:
  %free = icmp eq ptr %seen, null
  br i1 %free, label %take, label %other
take:
  %swap = cmpxchg ptr %cell, ptr null, ptr %thread acq_rel monotonic, align 8
  %took = extractvalue { ptr, i1 } %swap, 1
  br i1 %took, label %out, label %other
other:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 256
  br i1 %more, label %look, label %none
none:
  ret ptr null
out:
  ret ptr %cell
}

define internal ptr @irgrad.tape.guard_of() nounwind {
  %cell = call ptr @irgrad.tape.cell()
  %none = icmp eq ptr %cell, null
  br i1 %none, label %nobody, label %somebody
nobody:
  ret ptr null
somebody:
  %guardp = getelementptr i8, ptr %cell, i64 8
  %guard = load ptr, ptr %guardp, align 8
  ret ptr %guard
}

define internal void @irgrad.tape.enter(ptr %guard) nounwind {
  %cell = call ptr @irgrad.tape.cell()
  %cellp = getelementptr i8, ptr %guard, i64 520
  store ptr %cell, ptr %cellp, align 8
  %none = icmp eq ptr %cell, null
  br i1 %none, label %out, label %known
known:
  %guardp = getelementptr i8, ptr %cell, i64 8
  %prev = load ptr, ptr %guardp, align 8
  %prevp = getelementptr i8, ptr %guard, i64 512
  store ptr %prev, ptr %prevp, align 8
  store ptr %guard, ptr %guardp, align 8
  br label %out
out:
  ret void
}

define internal void @irgrad.tape.leave(ptr %guard) nounwind {
  %cellp = getelementptr i8, ptr %guard, i64 520
  %cell = load ptr, ptr %cellp, align 8
  %none = icmp eq ptr %cell, null
  br i1 %none, label %out, label %known
known:
  %prevp = getelementptr i8, ptr %guard, i64 512
  %prev = load ptr, ptr %prevp, align 8
  %guardp = getelementptr i8, ptr %cell, i64 8
  store ptr %prev, ptr %guardp, align 8
  br label %out
out:
  ret void
}

; there is no memory: all arenas of the call are finished, and control goes back to its guard
define internal void @irgrad.tape.fail(i64 %bytes, i64 %total, i64 %count, ptr %where) noinline optnone cold noreturn nounwind {
entry:
  %guard = call ptr @irgrad.tape.guard_of()
  %none = icmp eq ptr %guard, null
  br i1 %none, label %die, label %note
note:
  %bytesp = getelementptr i8, ptr %guard, i64 528
  store i64 %bytes, ptr %bytesp, align 8
  %totalp = getelementptr i8, ptr %guard, i64 536
  store i64 %total, ptr %totalp, align 8
  %countp = getelementptr i8, ptr %guard, i64 544
  store i64 %count, ptr %countp, align 8
  %wherep = getelementptr i8, ptr %guard, i64 552
  store ptr %where, ptr %wherep, align 8
  %first = load atomic ptr, ptr @irgrad.tape.every acquire, align 8
  br label %each
each:  ; first no arena is to finish another one, then each is finished
  %pass = phi i1 [ false, %note ], [ %pass, %on ], [ true, %again ]
  %arena = phi ptr [ %first, %note ], [ %next, %on ], [ %first, %again ]
  %done = icmp eq ptr %arena, null
  br i1 %done, label %through, label %one
one:
  %nextp = getelementptr i8, ptr %arena, i64 72
  %next = load ptr, ptr %nextp, align 8
  %ownerp = getelementptr i8, ptr %arena, i64 64
  %owner = load atomic ptr, ptr %ownerp monotonic, align 8
  %held = icmp eq ptr %owner, %guard
  br i1 %held, label %ours, label %on
ours:
  br i1 %pass, label %finish, label %forget
forget:
  call void @irgrad.tape.forget(ptr %arena)
  br label %on
finish:
  call void @irgrad.tape.finish(ptr %arena)
  br label %on
on:
  br label %each
through:
  br i1 %pass, label %jump, label %again
again:
  br label %each
jump:
  call void @longjmp(ptr %guard, i32 1)
  unreachable
die:
  %text = alloca [512 x i8], align 16
  %known = icmp eq ptr %where, null
  %place = select i1 %known, ptr @irgrad.tape.nowhere, ptr %where
  %apart = icmp eq i64 %count, -4
  %outside = icmp eq i64 %count, -5
  %threw = icmp eq i64 %count, -6
  %lost = icmp eq i64 %count, -7
  %moved = or i1 %apart, %outside
  %other = or i1 %threw, %lost
  %wrong = or i1 %moved, %other
  br i1 %wrong, label %far, label %full
far:
  %strayed = select i1 %apart, ptr @irgrad.tape.far, ptr @irgrad.tape.outside
  %led = select i1 %lost, ptr @irgrad.tape.lostway, ptr %strayed
  %form = select i1 %threw, ptr @irgrad.tape.threw, ptr %led
  %thrown = inttoptr i64 %bytes to ptr
  %words = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr %form, ptr %place, ptr %thrown)
  br label %tell
full:
  %numbers = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr @irgrad.tape.told, i64 %bytes, i64 %total, ptr %place)
  br label %tell
tell:
  %whole = phi i32 [ %words, %far ], [ %numbers, %full ]
  %size = call i32 @llvm.umin.i32(i32 %whole, i32 511)
  %length = sext i32 %size to i64
  %said = call i64 @write(i32 2, ptr %text, i64 %length)
  call void @abort()
  unreachable
}

; a signal ends the call: as above, with -3 in place of the iterations; it returns where this thread has no guard
define void @irgrad_tape_stop() noinline optnone cold nounwind {
entry:
  %guard = call ptr @irgrad.tape.guard_of()
  %none = icmp eq ptr %guard, null
  br i1 %none, label %out, label %stop
stop:
  call void @irgrad.tape.fail(i64 0, i64 0, i64 -3, ptr null)
  unreachable
out:
  ret void
}

; arenas that this one would finish are finished by others
define internal void @irgrad.tape.forget(ptr %t) noinline optnone nounwind {
entry:
  %pendingp = getelementptr i8, ptr %t, i64 24
  %first = load ptr, ptr %pendingp, align 8
  br label %look
look:
  %node = phi ptr [ %first, %entry ], [ %next, %on ]
  %done = icmp eq ptr %node, null
  br i1 %done, label %out, label %one
one:
  %next = load ptr, ptr %node, align 8
  %kindp = getelementptr i8, ptr %node, i64 16
  %kind = load i64, ptr %kindp, align 8
  %arena = icmp eq i64 %kind, 1
  br i1 %arena, label %clear, label %on
clear:
  store i64 2, ptr %kindp, align 8
  br label %on
on:
  br label %look
out:
  ret void
}

; what a guard's function returns where memory ran out
define internal ptr @irgrad.tape.failure(ptr %guard) noinline optnone cold nounwind {
  call void @irgrad.tape.leave(ptr %guard)
  %new = call ptr @malloc(i64 40)
  %none = icmp eq ptr %new, null
  %record = select i1 %none, ptr @irgrad.tape.last, ptr %new
  %owned = select i1 %none, i64 0, i64 1
  %ownedp = getelementptr i8, ptr %record, i64 32
  store i64 %owned, ptr %ownedp, align 8
  %from = getelementptr i8, ptr %guard, i64 528
  %words = load <4 x i64>, ptr %from, align 8
  store <4 x i64> %words, ptr %record, align 8
  ret ptr %record
}


define internal noalias ptr @irgrad.tape.alloc(ptr %t, i64 %n)
    noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) {
entry:
  %up = add i64 %n, 15
  %size = and i64 %up, -16
  %top = load ptr, ptr %t, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %topi = ptrtoint ptr %top to i64
  %endi = ptrtoint ptr %end to i64
  %room = sub i64 %endi, %topi
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %fast, label %slow
fast:
  %new = getelementptr i8, ptr %top, i64 %size
  store ptr %new, ptr %t, align 8
  ret ptr %top
slow:
  %p = call ptr @irgrad.tape.grow(ptr %t, i64 %size)
  ret ptr %p
}

define internal ptr @irgrad.tape.grow(ptr %t, i64 %size) noinline optnone cold nounwind {
entry:
  %totalp = getelementptr i8, ptr %t, i64 32
  %total = load i64, ptr %totalp, align 8
  %hintp = getelementptr i8, ptr %t, i64 40
  %hint = load i64, ptr %hintp, align 8
  %a = call i64 @llvm.umax.i64(i64 %size, i64 %total)
  %b = call i64 @llvm.umax.i64(i64 %a, i64 %hint)
  %wanted = call i64 @llvm.umax.i64(i64 %b, i64 65536)
  %least = call i64 @llvm.umax.i64(i64 %size, i64 65536)
  br label %try
try:  ; as much again as there is; half of it, and so on, where the system or the limit does not give that
  %room = phi i64 [ %wanted, %entry ], [ %less, %short ]
  %bytes = add i64 %room, 64
  %all = add i64 %total, %room
  %limit = load atomic i64, ptr @irgrad_tape_limit monotonic, align 8
  %over = icmp ugt i64 %all, %limit
  br i1 %over, label %short, label %ask
ask:
  %chunk = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %chunk, null
  br i1 %failed, label %short, label %made
short:
  %half = lshr i64 %room, 1
  %less = call i64 @llvm.umax.i64(i64 %half, i64 %least)
  %more = icmp ult i64 %less, %room
  br i1 %more, label %try, label %die
die:
  %countp = getelementptr i8, ptr %t, i64 48
  %count = load i64, ptr %countp, align 8
  %wherep = getelementptr i8, ptr %t, i64 56
  %where = load ptr, ptr %wherep, align 8
  call void @irgrad.tape.fail(i64 %size, i64 %total, i64 %count, ptr %where)
  unreachable
made:  ; large_tapes.ll looks here
  %chunkp = getelementptr i8, ptr %t, i64 16
  %before = load ptr, ptr %chunkp, align 8
  store ptr %before, ptr %chunk, align 8
  %sizep = getelementptr i8, ptr %chunk, i64 8
  store i64 %room, ptr %sizep, align 8
  store ptr %chunk, ptr %chunkp, align 8
  %grown = add i64 %total, %room
  store i64 %grown, ptr %totalp, align 8
  store i64 0, ptr %hintp, align 8
  %data = getelementptr i8, ptr %chunk, i64 64
  %end = getelementptr i8, ptr %data, i64 %room
  %endp = getelementptr i8, ptr %t, i64 8
  store ptr %end, ptr %endp, align 8
  %top = getelementptr i8, ptr %data, i64 %size
  store ptr %top, ptr %t, align 8
  ret ptr %data
}

; the same out of the caller's buffer { top, end }, which is as large as was computed before: it cannot run out

define internal noalias ptr @irgrad.tape.carve(ptr %t, i64 %n)
    noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) {
entry:
  %up = add i64 %n, 15
  %size = and i64 %up, -16
  %top = load ptr, ptr %t, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %topi = ptrtoint ptr %top to i64
  %endi = ptrtoint ptr %end to i64
  %room = sub i64 %endi, %topi
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %fast, label %slow
fast:
  %new = getelementptr i8, ptr %top, i64 %size
  store ptr %new, ptr %t, align 8
  ret ptr %top
slow:
  call void @abort()
  unreachable
}

define internal void @irgrad.tape.free_later(ptr %t, ptr %p) nounwind {
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 0)
  ret void
}

define internal void @irgrad.tape.finish_later(ptr %t, ptr %p) nounwind {
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 1)
  ret void
}

; %release gives back what %p describes (memory of an allocator of the user)
define internal void @irgrad.tape.release_later(ptr %t, ptr %p, ptr %release) nounwind {
  %kind = ptrtoint ptr %release to i64
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 %kind)
  ret void
}

define internal void @irgrad.tape.later(ptr %t, ptr %p, i64 %kind) noinline nounwind {
  %node = call ptr @irgrad.tape.alloc(ptr %t, i64 32)
  %pendingp = getelementptr i8, ptr %t, i64 24
  %pending = load ptr, ptr %pendingp, align 8
  store ptr %pending, ptr %node, align 8
  %what = getelementptr i8, ptr %node, i64 8
  store ptr %p, ptr %what, align 8
  %kindp = getelementptr i8, ptr %node, i64 16
  store i64 %kind, ptr %kindp, align 8
  store ptr %node, ptr %pendingp, align 8
  ret void
}

; what is in it goes, with what waits for that; it stays with its holder
define internal void @irgrad.tape.reuse(ptr %t) nounwind {
entry:
  %pendingp = getelementptr i8, ptr %t, i64 24
  %first = load ptr, ptr %pendingp, align 8
  br label %free
free:
  %node = phi ptr [ %first, %entry ], [ %next, %freed ]
  %done = icmp eq ptr %node, null
  br i1 %done, label %count, label %one
one:
  %next = load ptr, ptr %node, align 8
  %what = getelementptr i8, ptr %node, i64 8
  %p = load ptr, ptr %what, align 8
  %kindp = getelementptr i8, ptr %node, i64 16
  %kind = load i64, ptr %kindp, align 8
  switch i64 %kind, label %release [ i64 0, label %memory
                                     i64 1, label %arena
                                     i64 2, label %freed ]
release:
  %how = inttoptr i64 %kind to ptr
  call void %how(ptr %p)
  br label %freed
memory:
  call void @free(ptr %p)
  br label %freed
arena:
  call void @irgrad.tape.finish(ptr %p)
  br label %freed
freed:
  br label %free
count:
  store ptr null, ptr %pendingp, align 8
  %childrenp = getelementptr i8, ptr %t, i64 80
  store ptr null, ptr %childrenp, align 8
  call void @irgrad.tape.at(ptr %t, i64 -1, ptr null)
  %totalp = getelementptr i8, ptr %t, i64 32
  %total = load i64, ptr %totalp, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %top = load ptr, ptr %t, align 8
  %endi = ptrtoint ptr %end to i64
  %topi = ptrtoint ptr %top to i64
  %left = sub i64 %endi, %topi
  %used = sub i64 %total, %left
  %peak = load atomic i64, ptr @irgrad_tape_peak monotonic, align 8
  %higher = icmp ugt i64 %used, %peak
  br i1 %higher, label %tell, label %told
tell:
  %was = atomicrmw umax ptr @irgrad_tape_peak, i64 %used monotonic, align 8
  br label %told
told:
  %chunkp = getelementptr i8, ptr %t, i64 16
  %chunk = load ptr, ptr %chunkp, align 8
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %out, label %some
some:
  %second = load ptr, ptr %chunk, align 8
  %single = icmp eq ptr %second, null
  br i1 %single, label %rewind, label %merge
rewind:
  %data = getelementptr i8, ptr %chunk, i64 64
  store ptr %data, ptr %t, align 8
  br label %out
merge:
  call void @irgrad.tape.drop(ptr %t)
  %hintp = getelementptr i8, ptr %t, i64 40
  store i64 %total, ptr %hintp, align 8
  br label %out
out:
  ret void
}

define internal void @irgrad.tape.finish(ptr %t) noinline nounwind {
entry:
  call void @irgrad.tape.reuse(ptr %t)
  %guardp = getelementptr i8, ptr %t, i64 64
  store atomic ptr null, ptr %guardp monotonic, align 8
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %inext, %taken ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %seen = load atomic ptr, ptr %cell monotonic, align 8
  %vacant = icmp eq ptr %seen, null
  br i1 %vacant, label %try, label %taken
try:
  %swap = cmpxchg ptr %cell, ptr null, ptr %t acq_rel monotonic, align 8
  %ok = extractvalue { ptr, i1 } %swap, 1
  br i1 %ok, label %out, label %taken
taken:
  %inext = add i64 %i, 1
  %more = icmp ult i64 %inext, 64
  br i1 %more, label %scan, label %full
full:
  call void @irgrad.tape.drop(ptr %t)
  store atomic ptr inttoptr (i64 1 to ptr), ptr %guardp release, align 8
  br label %out
out:
  ret void
}

; the arena of part %c of what this arena's call has in parts: the same one for all its jobs, finished with it
define internal ptr @irgrad.tape.child(ptr %t, i64 %c) noinline nounwind {
entry:
  %childrenp = getelementptr i8, ptr %t, i64 80
  %known = load ptr, ptr %childrenp, align 8
  %none = icmp eq ptr %known, null
  br i1 %none, label %begin, label %look
begin:
  %fresh = call ptr @irgrad.tape.alloc(ptr %t, i64 128)
  call void @llvm.memset.p0.i64(ptr %fresh, i8 0, i64 128, i1 false)
  store ptr %fresh, ptr %childrenp, align 8
  br label %look
look:
  %children = phi ptr [ %known, %entry ], [ %fresh, %begin ]
  %cell = getelementptr ptr, ptr %children, i64 %c
  %seen = load ptr, ptr %cell, align 8
  %missing = icmp eq ptr %seen, null
  br i1 %missing, label %make, label %out
make:
  %made = call ptr @irgrad.tape.acquire()
  call void @irgrad.tape.finish_later(ptr %t, ptr %made)
  store ptr %made, ptr %cell, align 8
  br label %out
out:
  %child = phi ptr [ %seen, %look ], [ %made, %make ]
  ret ptr %child
}

define internal void @irgrad.tape.drop(ptr %t) noinline optnone nounwind {
entry:
  %chunkp = getelementptr i8, ptr %t, i64 16
  %first = load ptr, ptr %chunkp, align 8
  br label %loop
loop:
  %chunk = phi ptr [ %first, %entry ], [ %next, %one ]
  %done = icmp eq ptr %chunk, null
  br i1 %done, label %out, label %one
one:
  %next = load ptr, ptr %chunk, align 8
  call void @free(ptr %chunk)
  br label %loop
out:
  call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 48, i1 false)
  ret void
}

; gives all memory of the arenas back; called when the unit is closed
define void @irgrad_tape_drain() noinline optnone nounwind {
entry:
  %first = atomicrmw xchg ptr @irgrad.tape.every, ptr null acq_rel, align 8
  call void @llvm.memset.p0.i64(ptr @irgrad.tape.pool, i8 0, i64 512, i1 false)
  br label %each
each:
  %arena = phi ptr [ %first, %entry ], [ %next, %one ]
  %done = icmp eq ptr %arena, null
  br i1 %done, label %out, label %one
one:
  %nextp = getelementptr i8, ptr %arena, i64 72
  %next = load ptr, ptr %nextp, align 8
  call void @irgrad.tape.drop(ptr %arena)
  call void @free(ptr %arena)
  br label %each
out:
  ret void
}

; gives the memory of the arenas that no call uses back, and returns how many bytes that were
define i64 @irgrad_tape_trim() noinline optnone nounwind {
entry:
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %sum = phi i64 [ 0, %entry ], [ %bytes, %again ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %got = atomicrmw xchg ptr %cell, ptr null acq_rel, align 8
  %empty = icmp eq ptr %got, null
  br i1 %empty, label %again, label %drop
drop:
  %totalp = getelementptr i8, ptr %got, i64 32
  %total = load i64, ptr %totalp, align 8
  call void @irgrad.tape.drop(ptr %got)
  %freed = add i64 %sum, %total
  %guardp = getelementptr i8, ptr %got, i64 64
  store atomic ptr inttoptr (i64 1 to ptr), ptr %guardp release, align 8
  br label %again
again:
  %bytes = phi i64 [ %sum, %scan ], [ %freed, %drop ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %scan, label %out
out:
  ret i64 %bytes
}

; the loop at %where ended in another way when its iterations ran again
define internal void @irgrad.tape.differs(i1 %wrong, ptr %where) alwaysinline nounwind {
entry:
  br i1 %wrong, label %die, label %out
die:
  call void @irgrad.tape.fail(i64 0, i64 0, i64 -2, ptr %where)
  unreachable
out:
  ret void
}

; a pointer would move by the distance of two allocations, which is computed at %where
define internal void @irgrad.tape.apart(i1 %wrong, ptr %where) alwaysinline nounwind {
entry:
  br i1 %wrong, label %die, label %out
die:
  call void @irgrad.tape.fail(i64 0, i64 0, i64 -4, ptr %where)
  unreachable
out:
  ret void
}

; an index of an array that is a member of a struct is not one of its elements, at %where
define internal void @irgrad.tape.leaves(i1 %wrong, ptr %where) alwaysinline nounwind {
entry:
  br i1 %wrong, label %die, label %out
die:
  call void @irgrad.tape.fail(i64 0, i64 0, i64 -5, ptr %where)
  unreachable
out:
  ret void
}

; an access through a pointer that leads nowhere for the analysis, at %where
define internal void @irgrad.tape.lost(i1 %wrong, ptr %where) alwaysinline nounwind {
entry:
  br i1 %wrong, label %die, label %out
die:
  call void @irgrad.tape.fail(i64 0, i64 0, i64 -7, ptr %where)
  unreachable
out:
  ret void
}

; the largest tape so far, which is another number from now on
define internal i64 @irgrad.tape.peak(i64 %new) noinline nounwind {
  %old = atomicrmw xchg ptr @irgrad_tape_peak, i64 %new monotonic, align 8
  ret i64 %old
}

; the largest tape of one call since the last time this was asked
define i64 @irgrad_tape_bytes() noinline nounwind {
  %old = atomicrmw xchg ptr @irgrad_tape_peak, i64 0 monotonic, align 8
  ret i64 %old
}
