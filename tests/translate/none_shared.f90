program d1
  implicit none
  integer, parameter :: n = 20
  real(8) :: a(n), b(n), x, y
  integer :: i, k, m
  !$homing distribute a(cyclic(3)), b(cyclic(3))
  m = 5
  !$omp parallel default(none) shared(a, b, m, x) private(i, k, y)
  !$omp do
  do i = 1, n
    a(i) = i
    b(i) = 0
  end do
  do k = 1, 2
    y = a(m)
    !$omp do
    do i = 3, n - 2
      b(i) = a(i - 2) + a(i + 2) + y
    end do
    !$omp do
    do i = n, 1, -1
      a(i) = b(i)*0.5d0 + a(i)
    end do
    if (a(1) > 0) then
      !$omp single
      x = a(1) + a(2)
      b(n) = x
      !$omp end single
    end if
  end do
  !$omp end parallel
  print *, sum(a), sum(b), x
end program
