! Every program of gfortran's has a handler of SIGSEGV: it prints where the program was and ends it. Windows
! may stay over serial code all the same; a fault of the program's own in serial code is told as ever.
!
!     fortran_serial end | null
program fortran_serial
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: n = 1048576
  real(c_double), allocatable :: x(:)
  real(c_double), pointer :: nothing(:)
  type(c_ptr) :: address
  character(8) :: how
  integer :: step, i

  call get_command_argument(1, how)
  allocate (x(n))
  x = 1
  do step = 1, 60
    !$omp parallel do schedule(static)
    do i = 1, n
      x(i) = x(i) + i
    end do
    x(1 + mod(step*4096, n)) = step ! serial code, on what may be armed
  end do
  print '(f0.1)', sum(x)
  flush (6)
  if (how == 'null') then
    address = transfer(int(8, c_intptr_t), address)
    call c_f_pointer(address, nothing, [1])
    nothing(1) = 1
  end if
end program
