define i64 @f(i64 %n, i1 %c) {
0:
  br i1 %c, label %loop.preheader, label %other
other:
  br label %loop.preheader
loop.preheader:
  %v0 = phi i64 [ 0, %0 ], [ 1, %other ]
  br label %loop
loop.latch:
  br label %loop
loop:
  %i = phi i64 [ %v0, %loop.preheader ], [ %next, %loop.latch ]
  %next = add i64 %i, 1
  %bit = trunc i64 %i to i1
  br i1 %bit, label %odd, label %even
even:
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop.latch, label %out
odd:
  br label %loop.latch
out:
  ret i64 %next
}
