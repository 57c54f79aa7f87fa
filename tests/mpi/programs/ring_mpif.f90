! SPDX-License-Identifier: Apache-2.0
! Operations through mpif.h: sentinels, requests, statuses and arrays in their Fortran form.
program ring
    implicit none
    include 'mpif.h'
    integer, parameter :: many = 50
    integer :: rank, ranks, left, right, error, i, place, done, flag_count
    integer :: requests(2 * many), statuses(MPI_STATUS_SIZE, 2 * many), status(MPI_STATUS_SIZE)
    integer :: counts(16), places(16), types(16), indices(2 * many)
    integer :: in(many), out(many)
    double precision :: values(64), others(64)
    logical :: flag
    character(len=1024) :: folder
    character(len=MPI_MAX_PROCESSOR_NAME) :: name

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    call MPI_Get_processor_name(name, place, error)
    right = mod(rank + 1, ranks)
    left = mod(rank + ranks - 1, ranks)
    out = rank
    values = rank
    call get_command_argument(1, folder)

    call MPI_Sendrecv(out, 3, MPI_INTEGER, right, 1, in, many, MPI_INTEGER, left, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(out, 3, MPI_INTEGER, right, 1, in, many, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status, error)
    call MPI_Get_count(status, MPI_INTEGER, i, error)
    if (i /= 3) call MPI_Abort(MPI_COMM_WORLD, 3, error)

    call exchange()
    call MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE, error)
    call exchange()
    call MPI_Waitall(2 * many, requests, statuses, error)
    call exchange()
    do i = 1, 2 * many
        call MPI_Waitany(2 * many, requests, place, status, error)
    end do
    call exchange()
    done = 0
    do while (done < 2 * many)
        call MPI_Testsome(2 * many, requests, flag_count, indices, MPI_STATUSES_IGNORE, error)
        done = done + flag_count
    end do
    call exchange()
    do i = 1, 2 * many
        flag = .false.
        do while (.not. flag)
            call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE, error)
        end do
    end do

    call MPI_Recv_init(in, many, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(1), error)
    call MPI_Send_init(out, 4, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2), error)
    do i = 1, 3
        call MPI_Startall(2, requests, error)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    end do
    call MPI_Request_free(requests(1), error)
    call MPI_Request_free(requests(2), error)

    call MPI_Bcast(values, 5, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
    call MPI_Allreduce(MPI_IN_PLACE, values, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, others, 2, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, error)
    do i = 1, ranks
        counts(i) = i
        places(i) = (i - 1) * i / 2
    end do
    call MPI_Gatherv(values, rank + 1, MPI_DOUBLE_PRECISION, others, counts, places, MPI_DOUBLE_PRECISION, 0, &
                     MPI_COMM_WORLD, error)
    counts = 2
    types = MPI_INTEGER
    do i = 1, ranks
        places(i) = 16 * (i - 1)
    end do
    call MPI_Alltoallw(values, counts, places, types, others, counts, places, types, MPI_COMM_WORLD, error)

    call expected()
    call MPI_Finalize(error)

contains

    subroutine exchange()
        integer :: k
        do k = 1, many
            call MPI_Irecv(in(k), 1, MPI_INTEGER, left, k, MPI_COMM_WORLD, requests(k), error)
        end do
        do k = 1, many
            call MPI_Isend(out(k), 1, MPI_INTEGER, right, k, MPI_COMM_WORLD, requests(many + k), error)
        end do
    end subroutine

    subroutine line(name, sent, received, messages_sent, messages_received)
        character(len=*), intent(in) :: name
        integer, intent(in) :: sent, received, messages_sent, messages_received
        write (9, '(a,5(a,i0))') name, achar(9), sent, achar(9), received, achar(9), messages_sent, achar(9), &
            messages_received, achar(9), ranks
    end subroutine

    subroutine expected()
        integer :: root
        root = merge(1, 0, rank == 0)
        write (folder, '(a,a,i0,a)') trim(folder), '/expected-', rank, '.tsv'
        open (9, file=trim(folder), status='replace', action='write')
        call line('MPI_Sendrecv', 24, 24, 2, 2)
        call line('MPI_Irecv', 0, 5 * many * 4, 0, 5 * many)
        call line('MPI_Isend', 5 * many * 4, 0, 5 * many, 0)
        call line('MPI_Startall', 48, 48, 3, 3)
        call line('MPI_Bcast', root * ranks * 40, 40, root, 1)
        call line('MPI_Allreduce', 40, 40, 1, 1)
        call line('MPI_Allgather', 16 * ranks, 16 * ranks, 1, 1)
        call line('MPI_Gatherv', 8 * (rank + 1), root * 4 * ranks * (ranks + 1), 1, root)
        call line('MPI_Alltoallw', 8 * ranks, 8 * ranks, 1, 1)
        close (9)
    end subroutine
end program
