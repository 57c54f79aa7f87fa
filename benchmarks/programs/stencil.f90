! SPDX-License-Identifier: Apache-2.0
! A seven-point stencil on a cube. Arguments: points in each direction, sweeps.
module field
  implicit none
contains
  subroutine sweep(n, a, b)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n, n, n)
    real(8), intent(inout) :: b(n, n, n)
    integer :: i, j, k
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          b(i, j, k) = 0.4d0 * a(i, j, k) + 0.1d0 * (a(i - 1, j, k) + a(i + 1, j, k) + a(i, j - 1, k) &
            + a(i, j + 1, k) + a(i, j, k - 1) + a(i, j, k + 1))
        end do
      end do
    end do
  end subroutine
  real(8) function total(n, a)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n, n, n)
    total = sum(a)
  end function
end module
program stencil
  use field
  implicit none
  integer :: n, sweeps, s
  character(len=16) :: word
  real(8), allocatable :: a(:, :, :), b(:, :, :)
  call get_command_argument(1, word)
  read (word, *) n
  call get_command_argument(2, word)
  read (word, *) sweeps
  allocate (a(n, n, n), b(n, n, n))
  a = 0d0
  a(n / 2, n / 2, n / 2) = 1d6
  b = a
  do s = 1, sweeps, 2
    call sweep(n, a, b)
    call sweep(n, b, a)
  end do
  print '(f20.6)', total(n, a)
end program
