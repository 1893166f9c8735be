program p
  implicit none
  integer, parameter :: n = 40
  integer :: i
  real(8), allocatable :: a(:), b(:), c(:), d(:), e(:, :), f(:,:), g(:)
!$homing distribute a(block), b(block), c(block), d(block), e(*, block), f(*, block)
  allocate (b(n))
!$omp parallel do
!$homing on home(b(i))
  do i = 1, n
    b(i) = i
  end do
  allocate (a(n), source=b)
  allocate (c, source=b)
  allocate (d, mold=b)
  allocate (e(3, n), source=2.5d0)
  allocate (f, mold=e)
  allocate (g, source=b)
!$omp parallel do
!$homing on home(d(i))
  do i = 1, n
    d(i) = a(i) + c(i)
    f(:, i) = e(:, i)
  end do
  print *, d(1), d(n), sum(f), sum(g)
  deallocate (a, c)
  allocate (a(n), c(n), source=b)
  print *, a(3), c(4)
  deallocate (a, c)
  allocate (a(n), source=2*b + d)
  allocate (c(0:n-1), source=[(real(i, 8), i = 1, n)])
  print *, a(3), c(4)
end program
