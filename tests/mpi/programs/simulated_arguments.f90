! SPDX-License-Identifier: Apache-2.0
! Ranks that say what they were started with.
program arguments
  use mpi
  integer :: ierr, rank, length
  character(len=64) :: first, last, home
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call get_command_argument(1, first)
  call get_command_argument(command_argument_count(), last, length)
  call get_environment_variable('OF_THE_PROGRAM', home)
  if (rank == 1) print '(i0,6a,i0)', command_argument_count(), '|', trim(first), '|', trim(home), '|', trim(last), length
  call MPI_Finalize(ierr)
end program
