!mod$ v1 sum:3e75d1a5f32a675f
module field
contains
subroutine sweep(n,a,b)
integer(4),intent(in)::n
real(8),intent(in)::a(1_8:int(n,kind=8),1_8:int(n,kind=8),1_8:int(n,kind=8))
real(8),intent(inout)::b(1_8:int(n,kind=8),1_8:int(n,kind=8),1_8:int(n,kind=8))
end
function total(n,a)
integer(4),intent(in)::n
real(8),intent(in)::a(1_8:int(n,kind=8),1_8:int(n,kind=8),1_8:int(n,kind=8))
real(8)::total
end
end
