! SPDX-License-Identifier: Apache-2.0
! Records of Fortran: formatted, unformatted and as a stream.
program records
  implicit none
  integer :: unit, i, ios
  real(8) :: field(1000), total
  field = [(real(i, 8), i = 1, 1000)]
  open (newunit=unit, file='records.txt', action='write')
  do i = 1, 1000
    write (unit, *) i, field(i)
  end do
  close (unit)
  open (newunit=unit, file='records.unf', form='unformatted', action='write')
  do i = 1, 20
    write (unit) field
  end do
  close (unit)
  open (newunit=unit, file='records.bin', access='stream', form='unformatted', action='write')
  do i = 1, 10
    write (unit) field(1:100*i)
  end do
  close (unit)
  total = 0
  open (newunit=unit, file='records.unf', form='unformatted', action='read')
  do
    read (unit, iostat=ios) field
    if (ios /= 0) exit
    total = total + field(1000)
  end do
  close (unit)
  print *, total
end program records
