! Workshare, array sections and a COMMON block in Fortran.
program sections
  implicit none
  integer, parameter :: n = 300
  real(8), allocatable :: a(:, :), b(:, :)
  real(8) :: c(n, n)
  common /block/ c
  integer :: k
  allocate (a(n, n), b(n, n))
  a = 1
  b = 2
  c = 0
  do k = 1, 4
!$omp parallel workshare
    c(:, 2:n - 1) = a(:, 1:n - 2) + b(:, 3:n)
    a(1:n:2, :) = c(1:n:2, :)
!$omp end parallel workshare
  end do
  b(:, 1:n / 2) = a(:, n / 2 + 1:n)
  print '(f0.1)', sum(a) + sum(b) + sum(c)
end program
