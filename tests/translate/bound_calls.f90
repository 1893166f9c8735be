module g
  implicit none
  type :: field
    integer :: n = 2
  contains
    procedure, pass(me) :: add => add_to
    procedure, nopass :: twice
  end type
contains
  function total(this, x) result(t)
    class(field), intent(in) :: this
    real(8), intent(in) :: x(:)
    real(8) :: t
    integer :: i
    t = 0
!$omp parallel do reduction(+:t)
!$homing on home(x(i))
    do i = 1, size(x)
      t = t + x(i)*this%n
    end do
  end function
  subroutine add_to(x, me)
    real(8), intent(inout) :: x(:)
    class(field), intent(in) :: me
    integer :: i
!$omp parallel do
!$homing on home(x(i))
    do i = 1, size(x)
      x(i) = x(i) + me%n
    end do
  end subroutine
  subroutine twice(k, x)
    integer, intent(in) :: k
    real(8), intent(inout) :: x(:)
    integer :: i
!$omp parallel do
!$homing on home(x(i))
    do i = 1, size(x)
      x(i) = x(i)*k
    end do
  end subroutine
end module
program p
  use g
  implicit none
  integer, parameter :: n = 40
  type(field) :: f
  integer :: i
  real(8) :: a(n), s
!$homing distribute a(block)
  f%n = 3
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i
  end do
  call f%add(a)
  call f%twice(x=a, k=2)
  call twice(3, a)
  s = total(f, a)
  print *, s, a(1), a(n)
end program
