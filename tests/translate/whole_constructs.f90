program sec
  implicit none
  integer, parameter :: n = 20
  real(8) :: a(n), b(n), c(n), t
  integer :: i, k
  !$homing distribute a(block), b(block)
  c = 0; k = 3
  !$omp parallel private(t)
  !$omp do
  do i = 1, n
    a(i) = i
    b(i) = 2*i
  end do
  !$omp sections private(t)
  !$omp section
  !$homing on home(a(1))
  t = a(n)
  a(1) = 5 + t
  c(2) = t
  !$omp section
  b(n) = 7 + k
  !$omp end sections
  !$omp do
  do i = 2, n
    a(i) = a(i) + 1
  end do
  !$omp workshare
  b(2:n) = a(1:n-1)
  c = b
  !$omp end workshare
  !$omp do ordered
  do i = 2, n
    !$omp ordered
    a(i) = a(i)*0.5d0 + a(i - 1)
    print *, i, a(i)
    !$omp end ordered
  end do
  !$omp end do
  !$omp end parallel
  print *, sum(a), sum(b), sum(c)
end program
