! SPDX-License-Identifier: Apache-2.0
! Names of every kind of procedure, and teams of threads.
module grid
  implicit none
contains
  subroutine sweep(a, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, n
      a(i) = a(i) * 0.5d0 + weight(i)
    end do
    !$omp end parallel do
  contains
    real(8) function weight(k)
      integer, intent(in) :: k
      integer :: j
      weight = 0
      do j = 1, k
        if (mod(j * k, 3) == 1) weight = weight + sqrt(real(j, 8))
      end do
    end function
  end subroutine
end module

real(8) function my_sum(a, n)
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: a(n)
  integer :: i
  my_sum = 0
  do i = 1, n
    if (a(i) > 1) my_sum = my_sum + a(i)
  end do
end function

program heat
  use grid
  implicit none
  real(8) :: a(40)
  real(8), external :: my_sum
  a = 1
  call sweep(a, 40)
  call show
contains
  subroutine show
    print '(f0.3)', my_sum(a, 40)
  end subroutine
end program
