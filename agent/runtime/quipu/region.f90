! SPDX-License-Identifier: Apache-2.0
! quipu/region.f90: mark regions, phases and parameters in Fortran (quipu/region.h describes them).
!
! One source file of the program has the line   include 'quipu/region.f90'   before all other lines; all others write
!   use quipu_region
!   call quipu_region_begin('assemble')
!   call quipu_region_end('assemble')
!   call quipu_phase_begin('step', i)
!   call quipu_phase_end('step')
!   call quipu_parameter('n', n)
! In runs that are measured, the runtime of Quipu sets the pointers below. In other runs they are null, and each call
! costs one branch.
module quipu_region
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: quipu_region_begin, quipu_region_end, quipu_phase_begin, quipu_phase_end, quipu_parameter

  type(c_funptr), public, bind(c, name='quipu_hook_region_begin') :: quipu_hook_region_begin = c_null_funptr
  type(c_funptr), public, bind(c, name='quipu_hook_region_end') :: quipu_hook_region_end = c_null_funptr
  type(c_funptr), public, bind(c, name='quipu_hook_phase_begin') :: quipu_hook_phase_begin = c_null_funptr
  type(c_funptr), public, bind(c, name='quipu_hook_phase_end') :: quipu_hook_phase_end = c_null_funptr
  type(c_funptr), public, bind(c, name='quipu_hook_parameter') :: quipu_hook_parameter = c_null_funptr

  abstract interface
    subroutine of_name(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    subroutine of_iteration(name, iteration) bind(c)
      import :: c_char, c_long_long
      character(kind=c_char), intent(in) :: name(*)
      integer(c_long_long), value :: iteration
    end subroutine
    subroutine of_value(name, number) bind(c)
      import :: c_char, c_double
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: number
    end subroutine
  end interface

  interface quipu_phase_begin
    module procedure phase_begin_32, phase_begin_64
  end interface
  interface quipu_parameter
    module procedure parameter_int32, parameter_int64, parameter_real32, parameter_real64
  end interface

contains

  ! A separate procedure, so that compilers can inline quipu_region_begin, which then is one branch.
  subroutine with_name(function, name)
    type(c_funptr), intent(in) :: function
    character(len=*), intent(in) :: name
    procedure(of_name), pointer :: hook
    call c_f_procpointer(function, hook)
    call hook(trim(name) // c_null_char)
  end subroutine

  subroutine with_iteration(name, iteration)
    character(len=*), intent(in) :: name
    integer(c_long_long), intent(in) :: iteration
    procedure(of_iteration), pointer :: hook
    call c_f_procpointer(quipu_hook_phase_begin, hook)
    call hook(trim(name) // c_null_char, iteration)
  end subroutine

  subroutine quipu_region_begin(name)
    character(len=*), intent(in) :: name
    if (c_associated(quipu_hook_region_begin)) call with_name(quipu_hook_region_begin, name)
  end subroutine

  subroutine quipu_region_end(name)
    character(len=*), intent(in) :: name
    if (c_associated(quipu_hook_region_end)) call with_name(quipu_hook_region_end, name)
  end subroutine

  subroutine phase_begin_64(name, iteration)
    character(len=*), intent(in) :: name
    integer(int64), intent(in) :: iteration
    if (c_associated(quipu_hook_phase_begin)) call with_iteration(name, int(iteration, c_long_long))
  end subroutine

  subroutine phase_begin_32(name, iteration)
    character(len=*), intent(in) :: name
    integer(int32), intent(in) :: iteration
    call phase_begin_64(name, int(iteration, int64))
  end subroutine

  subroutine quipu_phase_end(name)
    character(len=*), intent(in) :: name
    if (c_associated(quipu_hook_phase_end)) call with_name(quipu_hook_phase_end, name)
  end subroutine

  subroutine parameter_real64(name, number)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: number
    procedure(of_value), pointer :: hook
    if (.not. c_associated(quipu_hook_parameter)) return
    call c_f_procpointer(quipu_hook_parameter, hook)
    call hook(trim(name) // c_null_char, real(number, c_double))
  end subroutine

  subroutine parameter_real32(name, number)
    character(len=*), intent(in) :: name
    real(real32), intent(in) :: number
    call parameter_real64(name, real(number, real64))
  end subroutine

  subroutine parameter_int32(name, number)
    character(len=*), intent(in) :: name
    integer(int32), intent(in) :: number
    call parameter_real64(name, real(number, real64))
  end subroutine

  subroutine parameter_int64(name, number)
    character(len=*), intent(in) :: name
    integer(int64), intent(in) :: number
    call parameter_real64(name, real(number, real64))
  end subroutine

end module quipu_region
