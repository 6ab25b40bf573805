; ModuleID = '<string>'
source_filename = "<string>"

define double @f(ptr %p, i64 %n) {
entry:
  %more1 = icmp slt i64 0, %n
  br i1 %more1, label %body.lr.ph, label %out

body.lr.ph:                                       ; preds = %entry
  br label %body

body:                                             ; preds = %body.lr.ph, %body
  %s3 = phi double [ 0.000000e+00, %body.lr.ph ], [ %t, %body ]
  %i2 = phi i64 [ 0, %body.lr.ph ], [ %next, %body ]
  %q = getelementptr double, ptr %p, i64 %i2
  %v = load double, ptr %q, align 8
  %t = fadd double %s3, %v
  %next = add i64 %i2, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %head.out_crit_edge

head.out_crit_edge:                               ; preds = %body
  %split = phi double [ %t, %body ]
  br label %out

out:                                              ; preds = %head.out_crit_edge, %entry
  %s.lcssa = phi double [ %split, %head.out_crit_edge ], [ 0.000000e+00, %entry ]
  ret double %s.lcssa
}
