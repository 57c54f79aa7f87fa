! SPDX-License-Identifier: Apache-2.0
! A ring of Fortran ranks; each counts in variables of its own.
module grid
contains
  subroutine work(n, s)
    integer, intent(in) :: n
    double precision, intent(out) :: s
    integer :: i
    s = 0
    do i = 1, n
      s = s + 1d0 / i
    end do
  end subroutine
end module

program ring
  use grid
  use mpi
  integer :: ierr, rank, size, status(MPI_STATUS_SIZE), token
  integer :: saved = 5
  double precision :: s
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  saved = saved + rank
  call work(1000 * (rank + 1), s)
  token = rank
  if (rank == 0) then
    call MPI_Send(token, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierr)
    call MPI_Recv(token, 1, MPI_INTEGER, size - 1, 0, MPI_COMM_WORLD, status, ierr)
  else
    call MPI_Recv(token, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, status, ierr)
    call MPI_Send(token, 1, MPI_INTEGER, mod(rank + 1, size), 0, MPI_COMM_WORLD, ierr)
  end if
  call MPI_Allreduce(MPI_IN_PLACE, token, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (saved /= 5 + rank) call MPI_Abort(MPI_COMM_WORLD, 4, ierr)
  if (token /= 0 .or. s < 1) call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  call MPI_Finalize(ierr)
end program
