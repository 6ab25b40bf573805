declare i1 @irgrad.idle.double(double)
define i1 @f(double %x) {
  %none = call i1 @irgrad.idle.double(double %x)
  ret i1 %none
}
