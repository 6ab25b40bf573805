define i64 @f(i64 %n, i1 %c) {
  br i1 %c, label %loop, label %other
other:
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ 1, %other ], [ %next, %even ], [ %next, %odd ]
  %next = add i64 %i, 1
  %bit = trunc i64 %i to i1
  br i1 %bit, label %odd, label %even
even:
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
odd:
  br label %loop
out:
  ret i64 %next
}
