program imp
  implicit none
  integer, parameter :: n = 30
  real(8) :: a, b, s, c(n)
  dimension a(n), b(n)
  integer :: i
  real(8) z
  allocatable z(:)
  dimension q(n), r(4)
  real(8) :: q, r, w(n)
  !$homing distribute a(block), b(block), z(cyclic), q(block)
  allocate (z(n))
  r = 1; w = 2
  !$omp parallel do
  do i = 1, n
    a(i) = i
    b(i) = 2
    q(i) = 1
  end do
  !$omp parallel do
  do i = 1, n
    z(i) = i
  end do
  c = a
  s = sum(a) + sum(b) + sum(z)
  print *, s, sum(c), r(1), sum(q), sum(w)
end program
