module s
contains
  real(8) function norm(x, m)
    integer, intent(in) :: m
    real(8), intent(in) :: x(m)
    norm = sqrt(sum(x*x))
  end function
  pure function twice(x) result(y)
    real(8), intent(in) :: x(:)
    real(8) :: y(size(x))
    y = 2*x
  end function
  subroutine scale(x, m, f)
    integer, intent(in) :: m
    real(8), intent(inout) :: x(m)
    real(8), intent(in) :: f
    x = x*f
  end subroutine
end module
program p
  use s
  implicit none
  integer, parameter :: n = 18
  real(8) :: a(n, n), v(n), w(n)
  integer :: j, kind(2) = [3, 5]
  !$homing distribute a(*, block), v(block), w(cyclic(2))
  a = 1
  !$omp parallel do
  do j = 1, n
    v(j) = norm(a(:, j), n) + dot_product(a(:, j), a(:, j)) + maxval(a(2:5, j))
    call scale(a(:, j), n, v(j))
    a(:, j) = a(:, j) + twice(a(:, j))
  end do
  !$omp parallel do
  do j = 1, n
    w(j) = j*kind(2) + kind(1)
  end do
  print *, sum(a), sum(v), sum(w), kind
end program
