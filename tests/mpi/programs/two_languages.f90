! SPDX-License-Identifier: Apache-2.0
! Fortran that calls C, is called by it, and begins requests that C completes.
subroutine fsub(n)
  integer :: n, i
  real(8) :: s
  s = 0
  do i = 1, n
    s = s + sqrt(real(i,8))
  end do
  if (s < 0) print *, s
end subroutine
program p
  use iso_c_binding
  use mpi
  implicit none
  interface
    subroutine cexchange(f, x, n) bind(c)
      import
      integer :: f
      real(c_double) :: x(*)
      integer(c_int), value :: n
    end subroutine
    real(8) function ckern(n, x)
      integer :: n
      real(8) :: x(*)
    end function
  end interface
  integer :: e, r, req, req2, k, sz
  real(8) :: x(64), y(64), s
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  call MPI_Comm_size(MPI_COMM_WORLD, sz, e)
  x = r
  do k = 1, 3
    s = ckern(64, x)
    call cexchange(MPI_COMM_WORLD, x, 16)
    call cback(100)
    call MPI_Irecv(y, 8, MPI_REAL8, mod(r+sz-1,sz), 3, MPI_COMM_WORLD, req, e)
    call MPI_Isend(x, 8, MPI_REAL8, mod(r+1,sz), 3, MPI_COMM_WORLD, req2, e)
    call cwait(req)
    call cwait(req2)
    call MPI_Allreduce(MPI_IN_PLACE, s, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, e)
  end do
  call MPI_Finalize(e)
end program
