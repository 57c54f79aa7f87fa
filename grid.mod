!mod$ v1 sum:66c3cb1cf6a95093
module grid
contains
subroutine sweep(a,n)
integer(4),intent(in)::n
real(8),intent(inout)::a(1_8:int(n,kind=8))
end
end
