! Names that a loop has for its own mean something else in the rest of the region.
program main
  implicit none
  integer, parameter :: n = 20
  integer :: i, j, k, l, found
  real(8) :: a(n), t, s
  !$homing distribute a(block)
  k = 7
  t = 3
  s = 1
  found = 0
  !$omp parallel private(l)
  l = 4
  !$omp do private(t)
  do k = 1, n
    t = k
    a(k) = t
  end do
  !$omp do reduction(+:s) lastprivate(j)
  do l = 1, n
    j = l
    s = s + a(l)
  end do
  !$omp single
  t = t + 1
  a(k) = t
  found = l
  !$omp end single
  !$omp do
  do i = 1, n
    a(i) = a(i) + t + k + j
  end do
  !$omp end parallel
  print *, sum(a), s, t, k, found
end program
