! Static arrays of modules that the main program does not have by name: PRIVATE, ONLY, through other modules.
module sizes
  integer, parameter :: n = 17
end module
module base
  use sizes
  implicit none
  private
  real(8), public, save :: u(n)
  real(8), public, allocatable :: w(:)
  integer, parameter :: width = 2
  !$homing distribute u(block), w(block)
  public :: prepare
contains
  subroutine prepare
    allocate (w(n))
    w = 0.25d0
  end subroutine
end module
module solver
  use base, only: u, w
  use sizes
  implicit none
  private
  real(8) :: tmp(n)
  !$homing distribute tmp(block)
  public :: step, u
contains
  subroutine step
    integer :: i
    !$omp parallel do
    !$homing on home(tmp(i))
    do i = 2, n
      tmp(i) = w(i - 1) + u(i)
    end do
    !$omp parallel do
    !$homing on home(u(i))
    do i = 2, n
      u(i) = tmp(i)
      w(i) = w(i) + 1
    end do
  end subroutine
end module
module work
  implicit none
  private
  integer, parameter :: n = 19
  real(8) :: hidden(n), other(n)
  real(8), public :: shown(n)
  !$homing distribute hidden(block), shown(block)
  public fill, whole
contains
  subroutine fill(s)
    real(8), intent(in) :: s
    integer :: i
    !$omp parallel do
    !$homing on home(hidden(i))
    do i = 1, n
      hidden(i) = s*i
      shown(i) = 1
    end do
    other = 1
  end subroutine
  real(8) function whole()
    whole = sum(hidden) + sum(other)
  end function
end module
module second
  use sizes
  use work
  implicit none
  real(8), private :: hidden(n)
  real(8), protected :: open(n), dummy(n)
  !$homing distribute hidden(cyclic)
  !$homing distribute open(block)
contains
  subroutine more
    integer :: i
    !$omp parallel do
    !$homing on home(hidden(i))
    do i = 1, n
      hidden(i) = i
    end do
    !$omp parallel do
    !$homing on home(open(i))
    do i = 1, n
      open(i) = i
    end do
    open(1) = sum(hidden)
  end subroutine
end module
program p
  use base, only: prepare
  use solver
  use work
  use second
  implicit none
  integer :: i, hidden
  hidden = 1
  call prepare
  call fill(0.5d0)
  call more
  !$omp parallel do
  do i = lbound(u, 1), ubound(u, 1)
    u(i) = i
  end do
  call step
  call step
  print *, sum(u)
  print *, total()
  print *, whole()
  print *, open(3)
  print *, sum(shown)
contains
  real(8) function total()
    use base, only: w
    use sizes, only: n
    integer :: i
    total = 0
    !$omp parallel do reduction(+:total)
    !$homing on home(w(i))
    do i = 1, n
      total = total + w(i)
    end do
  end function
end program
