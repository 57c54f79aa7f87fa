! SPDX-License-Identifier: Apache-2.0
! Ranks that end at once or after others, by what the argument names; each leaves a line in a file that it does not close.
program stops
  use mpi
  integer :: ierr, rank, token
  integer :: status(MPI_STATUS_SIZE)  ! SimGrid 4.0 takes MPI_STATUS_IGNORE for an address
  character(len=8) :: how
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call get_command_argument(1, how)
  if (rank == 1) call MPI_Recv(token, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, status, ierr)
  if (rank == 0) call MPI_Send(rank, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierr)
  write (10 + rank, *) 'rank', rank
  call MPI_Finalize(ierr)
  if (how == 'stop') stop
  if (how == 'exit') call exit(0)
  if (how == 'error' .and. rank == 1) error stop 3
end program
