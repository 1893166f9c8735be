! Columns of distributed arrays, passed on as sections and by their first elements.
program columns
  implicit none
  integer, parameter :: n = 12
  real(8) :: a(n, 0:n), b(n, 0:n)
  integer :: j
  !$homing distribute a(*, DIST), b(*, DIST)
  b = 1
  !$omp parallel do
  !$homing on home(a(:, j))
  do j = 0, n
    call fill(a(:, j), j)
  end do
  !$omp parallel do
  !$homing on home(b(:, j))
  do j = 1, n
    call add(b(:, j), m=n, y=a(2:n, j - 1))
  end do
  !$omp parallel do
  !$homing on home(a(:, j))
  do j = 0, n
    call sweep(a(1, j), n)
    b(3, j) = b(3, j) + top(b(:, j))
  end do
  call fill(a(:, 3), 100)
  print *, sum(a), sum(b), a(n, n), b(3, 4)
contains
  subroutine fill(c, k)
    real(8), intent(out) :: c(:)
    integer, intent(in) :: k
    integer :: i
    do i = 1, size(c)
      c(i) = i + k
    end do
  end subroutine
  subroutine sweep(c, m)
    integer, intent(in) :: m
    real(8), intent(inout) :: c(m)
    integer :: i
    do i = 2, m
      c(i) = c(i) - 0.5d0*c(i - 1)
    end do
  end subroutine
  subroutine add(x, y, m)
    integer, intent(in) :: m
    real(8) :: x(m)
    real(8), intent(in) :: y(:)
    x(2:) = x(2:) + y
  end subroutine
  real(8) function top(x)
    real(8), intent(in) :: x(:)
    top = maxval(x)
  end function
end program
