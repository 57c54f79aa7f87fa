! SPDX-License-Identifier: Apache-2.0
! Operations through `use mpi_f08`, without error codes.
program ring
    use mpi_f08
    implicit none
    integer :: rank, ranks, left, right, i, place, done, some, places(2)
    double precision :: values(4), others(8)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status, statuses(2)
    type(MPI_Message) :: message
    character(len=1024) :: folder

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    right = mod(rank + 1, ranks)
    left = mod(rank + ranks - 1, ranks)
    values = rank
    call get_command_argument(1, folder)
    call MPI_Allreduce(MPI_IN_PLACE, values, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Irecv(others, 8, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(values, 4, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Isend(values, 3, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(1))
    call MPI_Mprobe(left, 2, MPI_COMM_WORLD, message, status)
    call MPI_Mrecv(others, 8, MPI_DOUBLE_PRECISION, message, MPI_STATUS_IGNORE)
    call MPI_Wait(requests(1), status)
    call MPI_Ibcast(values, 2, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call MPI_Recv_init(others, 8, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(values, 4, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, requests(2))
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, statuses)
    call MPI_Start(requests(1))
    call MPI_Start(requests(2))
    do i = 1, 2
        call MPI_Waitany(2, requests, place, MPI_STATUS_IGNORE)
    end do
    call MPI_Startall(2, requests)
    done = 0
    do while (done < 2)
        call MPI_Testsome(2, requests, some, places, statuses)
        done = done + some
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call MPI_Barrier(MPI_COMM_WORLD)
    write (folder, '(a,a,i0,a)') trim(folder), '/expected-', rank, '.tsv'
    open (9, file=trim(folder), status='replace', action='write')
    call line('MPI_Allreduce', 32, 32, 1, 1, ranks)
    call line('MPI_Irecv', 0, 32, 0, 1, ranks)
    call line('MPI_Isend', 56, 0, 2, 0, ranks)
    call line('MPI_Mrecv', 0, 24, 0, 1, 0)
    call line('MPI_Startall', 64, 64, 2, 2, ranks)
    call line('MPI_Start', 32, 32, 1, 1, ranks)
    call line('MPI_Barrier', 0, 0, 0, 0, ranks)
    call line('MPI_Ibcast', merge(16 * ranks, 0, rank == 0), 16, merge(1, 0, rank == 0), 1, ranks)
    close (9)
    call MPI_Finalize()

contains

    subroutine line(name, sent, received, messages_sent, messages_received, processes)
        character(len=*), intent(in) :: name
        integer, intent(in) :: sent, received, messages_sent, messages_received, processes
        write (9, '(a,5(a,i0))') name, achar(9), sent, achar(9), received, achar(9), messages_sent, achar(9), &
            messages_received, achar(9), processes
    end subroutine
end program
