program p
  implicit none
  real(8), allocatable :: a(:), b(:), c(:), s(:)
  integer :: i, n
  !$homing distribute a(block), b(block), c(block)
  n = 14
  b = [(i*1d0, i = 0, n + 1)]
  allocate (a(n + 2), source=2d0)
  allocate (s(n + 2)); s = 7
  allocate (c, source=s)
  !$omp parallel do
  do i = 2, n + 1
    a(i) = a(i) + b(i - 1) + b(i + 1) + c(i)
  end do
  print *, sum(a), sum(b), sum(c)
end program
