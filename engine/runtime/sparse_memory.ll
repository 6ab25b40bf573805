; What a derivative stores through an address of `__enzyme_todense`, until its call ends (see `enzyme/todense.py`).
;
;     memory  { cells, table, count, room }; all zero: nothing was stored
;     cell    { byte, [16 x i8] value }, in the order of the first stores
;     table   room numbers of cells, counted from one, by open addressing; room is a power of two, at least twice count

%irgrad.sparse.memory = type { ptr, ptr, i64, i64 }
%irgrad.sparse.cell = type { i64, [16 x i8] }

declare void @free(ptr)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @abort() noreturn

; where the table holds the cell of a byte, or would; room is not zero
define internal ptr @irgrad.sparse.spot(ptr %m, i64 %byte) nounwind {
entry:
  %cells = load ptr, ptr %m, align 8
  %table.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 1
  %table = load ptr, ptr %table.at, align 8
  %room.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 3
  %room = load i64, ptr %room.at, align 8
  %mask = sub i64 %room, 1
  %mixed = mul i64 %byte, -7046029254386353131
  %hash = lshr i64 %mixed, 32
  br label %look
look:
  %i = phi i64 [ %hash, %entry ], [ %next, %other ]
  %next = add i64 %i, 1
  %slot = and i64 %i, %mask
  %at = getelementptr i32, ptr %table, i64 %slot
  %number = load i32, ptr %at, align 4
  %free = icmp eq i32 %number, 0
  br i1 %free, label %out, label %taken
taken:
  %less = sub i32 %number, 1
  %index = zext i32 %less to i64
  %cell = getelementptr %irgrad.sparse.cell, ptr %cells, i64 %index
  %own = load i64, ptr %cell, align 8
  %same = icmp eq i64 %own, %byte
  br i1 %same, label %out, label %other
other:
  br label %look
out:
  ret ptr %at
}

; the value that was stored there; null: none was
define internal ptr @irgrad.sparse.find(ptr %m, i64 %byte) nounwind {
entry:
  %room.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 3
  %room = load i64, ptr %room.at, align 8
  %empty = icmp eq i64 %room, 0
  br i1 %empty, label %none, label %look
look:
  %at = call ptr @irgrad.sparse.spot(ptr %m, i64 %byte)
  %number = load i32, ptr %at, align 4
  %free = icmp eq i32 %number, 0
  br i1 %free, label %none, label %found
found:
  %cells = load ptr, ptr %m, align 8
  %less = sub i32 %number, 1
  %index = zext i32 %less to i64
  %value = getelementptr %irgrad.sparse.cell, ptr %cells, i64 %index, i32 1
  ret ptr %value
none:
  ret ptr null
}

; the place of a value, a new one where none was stored
define internal ptr @irgrad.sparse.place(ptr %m, i64 %byte) nounwind {
entry:
  %count.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 2
  %count = load i64, ptr %count.at, align 8
  %room.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 3
  %room = load i64, ptr %room.at, align 8
  %twice = shl i64 %count, 1
  %fits = icmp ult i64 %twice, %room
  br i1 %fits, label %look, label %grow
grow:
  call void @irgrad.sparse.grow(ptr %m)
  br label %look
look:
  %at = call ptr @irgrad.sparse.spot(ptr %m, i64 %byte)
  %cells = load ptr, ptr %m, align 8
  %number = load i32, ptr %at, align 4
  %free = icmp eq i32 %number, 0
  br i1 %free, label %add, label %found
add:
  %new = getelementptr %irgrad.sparse.cell, ptr %cells, i64 %count
  store i64 %byte, ptr %new, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at, align 8
  %name = trunc i64 %more to i32
  store i32 %name, ptr %at, align 4
  %fresh = getelementptr %irgrad.sparse.cell, ptr %new, i64 0, i32 1
  ret ptr %fresh
found:
  %less = sub i32 %number, 1
  %index = zext i32 %less to i64
  %value = getelementptr %irgrad.sparse.cell, ptr %cells, i64 %index, i32 1
  ret ptr %value
}

; twice the room
define internal void @irgrad.sparse.grow(ptr %m) noinline nounwind {
entry:
  %cells = load ptr, ptr %m, align 8
  %table.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 1
  %table = load ptr, ptr %table.at, align 8
  %count.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 2
  %count = load i64, ptr %count.at, align 8
  %room.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 3
  %room = load i64, ptr %room.at, align 8
  %none = icmp eq i64 %room, 0
  %twice = shl i64 %room, 1
  %wide = select i1 %none, i64 64, i64 %twice
  store i64 %wide, ptr %room.at, align 8
  call void @free(ptr %table)
  %cleared = call ptr @calloc(i64 %wide, i64 4)
  store ptr %cleared, ptr %table.at, align 8
  %half = lshr i64 %wide, 1
  %bytes = mul i64 %half, 24
  %moved = call ptr @realloc(ptr %cells, i64 %bytes)
  store ptr %moved, ptr %m, align 8
  %lost = icmp eq ptr %cleared, null
  %gone = icmp eq ptr %moved, null
  %failed = or i1 %lost, %gone
  br i1 %failed, label %die, label %fill
die:
  call void @abort()
  unreachable
fill:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %out, label %put
put:
  %cell = getelementptr %irgrad.sparse.cell, ptr %moved, i64 %i
  %byte = load i64, ptr %cell, align 8
  %at = call ptr @irgrad.sparse.spot(ptr %m, i64 %byte)
  %next = add i64 %i, 1
  %name = trunc i64 %next to i32
  store i32 %name, ptr %at, align 4
  br label %fill
out:
  ret void
}

define internal void @irgrad.sparse.close(ptr %m) nounwind {
  %cells = load ptr, ptr %m, align 8
  call void @free(ptr %cells)
  %table.at = getelementptr %irgrad.sparse.memory, ptr %m, i64 0, i32 1
  %table = load ptr, ptr %table.at, align 8
  call void @free(ptr %table)
  ret void
}
