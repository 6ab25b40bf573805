!mod$ v1 sum:fa5ad4938f966038
module m
contains
function f(x,n) result(s)
real(8),intent(in)::x(:)
integer(4),intent(in)::n
real(8)::s
end
end
