! SPDX-License-Identifier: Apache-2.0
! Names of procedures under MPI, in a program that is one process.
module ring
  implicit none
  include 'mpif.h'
contains
  subroutine Total(n)
    integer, intent(inout) :: n
    integer :: all, e
    call MPI_Allreduce(n, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
    n = all
  end subroutine
end module
subroutine Set_Up(n)
  implicit none
  include 'mpif.h'
  integer :: n, e
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, n, e)
end subroutine
program main
  use ring
  implicit none
  integer :: n, e
  call Set_Up(n)
  call Total(n)
  print '(i0)', n
  call MPI_Finalize(e)
end program
