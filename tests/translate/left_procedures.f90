! Procedures with arrays of their own, called many times: what is made at each call is freed however it is left.
program left_procedures
  implicit none
  integer :: i, before
  real(8) :: t
  t = 0
  before = 0
  do i = 1, 4000
    if (i == 500) before = resident()
    t = t + work(10 + mod(i, 3))
    call other(8, t)
  end do
  print *, t
  print *, resident() - before < 2000
contains
  function work(n) result(r)
    integer, intent(in) :: n
    real(8) :: a(n), r
    integer :: i
    !$homing distribute a(block)
    !$omp parallel do
    !$homing on home(a(i))
    do i = 1, n
      a(i) = i
    end do
    r = sum(a)
    if (n == 11) return
    r = r + 1
  end function
  subroutine other(n, t)
    integer, intent(in) :: n
    real(8), intent(inout) :: t
    real(8), allocatable :: b(:)
    integer :: i
    !$homing distribute b(block)
    if (n < 1) return
    allocate (b(n))
    !$omp parallel do
    !$homing on home(b(i))
    do i = 1, n
      b(i) = i
    end do
    t = t + b(n)
  end subroutine
  ! KiB of the process in memory.
  integer function resident()
    character(80) :: line
    integer :: unit, status
    resident = 0
    open (newunit=unit, file='/proc/self/status', action='read')
    do
      read (unit, '(a)', iostat=status) line
      if (status /= 0) exit
      if (line(1:6) == 'VmRSS:') read (line(7:20), *) resident
    end do
    close (unit)
  end function
end program
