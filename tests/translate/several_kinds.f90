! Procedures that are called with arrays of different distributions, and with none.
module helpers
  implicit none
  private
  public :: scale, add, norm, factor
  type factor
    real(8) :: scale
  end type
contains
  subroutine scale(x, n, f)
    integer, intent(in) :: n
    real(8), intent(inout) :: x(n)
    real(8), intent(in) :: f
    integer :: i
    type(factor) :: g
    g = factor(scale=f)
    !$omp parallel do
    do i = 1, n
      x(i) = x(i)*g%scale
    end do
  end subroutine scale
  subroutine add(y, x, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: y(n)
    real(8), intent(in) :: x(n)
    integer :: i
    call scale(y, n, 0.5d0)
    !$omp parallel do
    do i = 1, n
      y(i) = y(i) + x(i)
    end do
    ! add is done
    if (n < 0) print *, 'add', n
  end subroutine add
  real(8) function norm(x, n)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    integer :: i
    norm = 0
    !$omp parallel do reduction(max:norm)
    do i = 1, n
      norm = max(norm, abs(x(i)))
    end do
  end function norm
end module
program several_kinds
  use helpers, only: scale, add, norm, factor
  implicit none
  integer, parameter :: n = 12
  real(8) :: a(n), b(n), c(n), d(n), r
  integer :: i
  type(factor) :: twice = factor(scale=2)
  !$homing distribute a(block), b(cyclic), d(block)
  a = [(i*1d0, i=1, n)]
  b = 2
  c = 3
  d = 4
  call scale(a, n, twice%scale)
  call scale(b, n, 3d0)
  call scale(c, n, 4d0)
  call add(a, d, n)
  call add(b, c, n)
  call add(c, c + 1, n)
  r = norm(a, n)
  r = r + norm(b, n)
  r = r + norm(c, n)
  call outer_whose_name_is_as_long_as_the_standard_has_it_in_fortran_x(b)
  call outer_whose_name_is_as_long_as_the_standard_has_it_in_fortran_x(d)
  print '(12f6.1)', a, b, c, d, r
contains
  subroutine outer_whose_name_is_as_long_as_the_standard_has_it_in_fortran_x(x)
    real(8), intent(inout) :: x(:)
    call scale(x, n, 10d0)
  end subroutine
end program
