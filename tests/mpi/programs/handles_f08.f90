! SPDX-License-Identifier: Apache-2.0
! Types, procedures, callbacks and constants of mpi_f08, as flang has them for an MPI that was built with gfortran.
module work
  use mpi_f08
  implicit none
  logical :: forgiven = .false.
  type particle
    real(8) :: x(3)
    integer :: id
  end type
contains
  subroutine add(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_INTEGER) b = a + b
  end subroutine
end module
program main
  use work
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, size, ierr, n, total, provided, length, dims(2), coords(2), left, right, cnt
  type(MPI_Comm) :: comm, cart
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2), one
  type(MPI_Op) :: op
  type(MPI_Datatype) :: ptype
  type(MPI_Win) :: win
  type(MPI_Info) :: info
  type(MPI_Group) :: group
  logical :: flag, periods(2)
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=20) :: value
  real(8) :: x(10), y(10), start
  real(8), allocatable :: m(:,:)
  type(particle) :: p(3), q(3)
  integer(MPI_ADDRESS_KIND) :: lb, extent, sz, attr, disp(1) = 8
  type(MPI_Errhandler) :: errhandler
  procedure(MPI_Comm_errhandler_function) :: forgive
  type(c_ptr) :: base
  real(8), pointer :: window(:)
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror=ierr)
  if (ierr /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_Get_processor_name(name, length)
  if (length < 1 .or. length > len(name)) stop 2
  left = mod(rank + size - 1, size); right = mod(rank + 1, size)
  x = rank; y = -1
  call MPI_Irecv(y, 10, MPI_DOUBLE_PRECISION, left, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(x, 10, MPI_REAL8, right, 7, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, statuses)
  if (statuses(1)%MPI_TAG /= 7 .or. statuses(1)%MPI_SOURCE /= left) stop 3
  if (any(y /= left)) stop 4
  call MPI_Get_count(statuses(1), MPI_DOUBLE_PRECISION, cnt)
  if (cnt /= 10) stop 5
  call MPI_Sendrecv(x(1:9:2), 5, MPI_REAL8, right, 1, y, 10, MPI_REAL8, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Sendrecv_replace(x, 10, MPI_REAL8, right, 1, left, 1, MPI_COMM_WORLD, status)
  if (status%MPI_SOURCE /= left) stop 6
  call MPI_Op_create(add, .true., op)
  n = rank + 1
  call MPI_Allreduce(n, total, 1, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (total /= size * (size + 1) / 2) stop 7
  call MPI_Op_free(op)
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (n /= total) stop 8
  allocate(m(4, 4)); m = rank
  call MPI_Bcast(m, 16, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  if (any(m /= 0)) stop 9
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, comm)
  if (comm == MPI_COMM_NULL .or. comm == MPI_COMM_WORLD) stop 10
  call MPI_Comm_free(comm)
  if (comm /= MPI_COMM_NULL) stop 11
  dims = 0; periods = .true.
  call MPI_Dims_create(size, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart)
  call MPI_Cart_coords(cart, rank, 2, coords)
  call MPI_Cart_shift(cart, 0, 1, left, right)
  call MPI_Iallreduce(MPI_IN_PLACE, m, 16, MPI_DOUBLE_PRECISION, MPI_SUM, cart, one)
  call MPI_Test(one, flag, MPI_STATUS_IGNORE)
  if (.not. flag) call MPI_Wait(one, MPI_STATUS_IGNORE)
  call MPI_Waitall(0, requests, MPI_STATUSES_IGNORE)
  p%id = rank
  call MPI_Type_contiguous(int(storage_size(p(1)) / 8), MPI_BYTE, ptype)
  call MPI_Type_commit(ptype)
  call MPI_Type_get_extent(ptype, lb, extent)
  if (extent /= storage_size(p(1)) / 8) stop 12
  call MPI_Sendrecv(p, 3, ptype, rank, 0, q, 3, ptype, rank, 0, MPI_COMM_WORLD, status)
  if (any(q%id /= rank)) stop 13
  call MPI_Type_free(ptype)
  call MPI_Info_create(info)
  call MPI_Info_set(info, "key", "word")
  call MPI_Info_get(info, "key", 20, value, flag)
  if (.not. flag .or. value /= "word") stop 14
  call MPI_Info_free(info)
  sz = 80
  call MPI_Win_allocate(sz, 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, window, [10])
  window = 0
  call MPI_Win_fence(0, win)
  call MPI_Put(x, 10, MPI_REAL8, mod(rank + 1, size), 0_MPI_ADDRESS_KIND, 10, MPI_REAL8, win)
  call MPI_Win_fence(0, win)
  if (any(window /= mod(rank + 2 * size - 2, size))) stop 15
  call MPI_Win_free(win)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attr, flag)
  if (.not. flag .or. attr < 32767) stop 16
  call MPI_Comm_group(MPI_COMM_WORLD, group)
  call MPI_Group_size(group, n)
  if (n /= size) stop 17
  if (MPI_Aint_diff(MPI_Aint_add(sz, disp(1)), disp(1)) /= 80) stop 18
  call MPI_Comm_create_errhandler(forgive, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler)
  call MPI_Send(x, 1, MPI_REAL8, size + 1, 0, MPI_COMM_WORLD, ierr)
  if (ierr == MPI_SUCCESS .or. .not. forgiven) stop 19
  start = MPI_Wtime()
  call MPI_Barrier(MPI_COMM_WORLD)
  if (MPI_Wtime() < start) stop 20
  if (rank == 0) print '(a,i0)', 'verified ', size
  call MPI_Finalize()
end program

subroutine forgive(comm, error_code)
  use work
  implicit none
  type(MPI_Comm) :: comm
  integer :: error_code
  forgiven = comm == MPI_COMM_WORLD .and. error_code /= MPI_SUCCESS
end subroutine
