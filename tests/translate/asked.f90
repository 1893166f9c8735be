! What is asked about whole arrays in regions, arguments passed by their names, and GOTO to the end of a loop.
program asked
  implicit none
  integer, parameter :: n = 24
  real(8) :: a(n), b(n), c(0:5, n)
  real(8), allocatable :: d(:)
  integer :: i, j
  !$homing distribute a(block), b(block), c(*, block), d(block)
  allocate (d(-1:20))
  c = 1
  !$omp parallel do
  do i = lbound(a, 1), ubound(a, 1)
    a(i) = i + size(a, kind=8)
    b(i) = size(c) - ubound(b, 1)
  end do
  !$omp parallel do private(i)
  do j = lbound(c, dim=2), int(size(c, 2, 8))
    do i = lbound(c, 1), ubound(c, 1)
      c(i, j) = c(i, j) + size(c, 1)*j
    end do
  end do
  !$omp parallel do
  !$homing on home(d(i))
  do i = lbound(d, 1), ubound(d, 1)
    d(i) = i + size(d)
  end do
  do j = 1, size(d)/11
    !$omp parallel do
    do 10 i = 2, size(a)
      if (mod(i, 2) == 0) go to 10
      b(i) = b(i) + a(i - 1)
10  continue
  end do
  call mix(y=a, m=n, x=b)
  !$omp parallel
  call first(y=b, m=n, x=a)
  !$omp end parallel
  print *, sum(a), sum(b), sum(c), sum(d)
contains
  subroutine mix(x, y, m)
    integer, intent(in) :: m
    real(8), intent(inout) :: x(m), y(m)
    !$homing distribute x(block), y(block)
    integer :: k
    !$omp parallel do
    do k = 2, size(x)
      x(k) = x(k) + y(k - 1)
    end do
  end subroutine
  subroutine first(x, y, m)
    integer, intent(in) :: m
    real(8), intent(inout) :: x(m), y(m)
    !$homing distribute x(block), y(block)
    integer :: k
    !$omp do
    do k = 2, m
      x(k) = y(k - 1)
    end do
  end subroutine
end program
