program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, k, j
  real(8) :: a(n), b(n), t, c(n), m(8, 12), w(0:7, 12), r(8)
  logical :: l(n)
!$homing distribute a(block), b(cyclic), c(block), l(block), m(*, block)
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = mod(i*7, 11) + 0.5d0
    c(i) = 0
    l(i) = mod(i, 3) == 0
  end do
  do i = 1, n
    b(i) = i
  end do
  do i = 1, 12
    m(:, i) = [(i*j, j = 1, 8)]
  end do
  t = sum(a) + a(3)
  print *, t
  t = maxval(a)*2 - minval(b) + dot_product(a, b) + norm2(a) + count(l)
  k = count(a > 3) + maxloc(a, 1)
  print *, t, k, any(l), all(l), maxloc(a)
!$omp parallel private(t, k, w, r)
  t = sum(a) + a(3) + sum(a(n:30:-2)) + dot_product(a, b) + norm2(b(3:5)) + count(l)
  if (any(l)) t = t + 1
  k = maxloc(a, 1) + findloc(l, .true., 1)
  w = m
  r = m(8:1:-1, 3)
  t = t + maxval(m(:, 2:5)) + w(0, 12) + r(2)
!$omp do
!$homing on home(c(i))
  do i = 1, n
    c(i) = a(i)/t + k
  end do
!$omp end parallel
  print *, c(1), c(n)
!$omp parallel do
!$homing on home(c(i))
  do i = 1, n
    c(i) = a(i)/sum(b) + maxval(a) + sum(a(:i))
    if (i > 3) c(i) = c(i) + count(a(2:) > 10)
  end do
  print *, c(1), c(n)
!$omp parallel do
!$homing on home(m(:, i))
  do i = 1, 12
    m(1, i) = m(1, i) + minval(a(i:i+2)) - sum(b(n:i:-3))
  end do
  print *, m(1, ::2)
end program
