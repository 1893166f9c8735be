! Shared variables that loops inside a region add to, element by element, one after another, and read behind them.
program sums_in_regions
  implicit none
  integer, parameter :: n = 40
  integer :: i, k(n), histogram(8) = 1, calls
  real(8) :: x(n), y(n), most, total, seen, last
  !$homing distribute x(block), y(cyclic)
  k = [(1 + mod(i*7, 8), i=1, n)]
  most = -1
  total = 3
  seen = 0
  calls = 0
  !$omp parallel default(none) shared(x, y, k, histogram, most, total, seen, last, calls)
  !$omp do
  !$homing on home(x(i))
  do i = 1, n
    x(i) = mod(i*i, 17)*1.25d0
    !$omp atomic
    histogram(k(i)) = histogram(k(i)) + 1
  end do
  !$omp end do nowait
  !$omp do reduction(+:calls)
  !$homing on home(x(i))
  do i = 1, n
    calls = calls + 1
    !$omp critical
    if (x(i) > most) most = x(i)
    !$omp end critical
    !$omp atomic
    total = total + x(i)
  end do
  !$omp single
  seen = total + most + x(3)
  !$omp end single
  !$omp master
  last = x(n)*2
  !$omp end master
  !$omp barrier
  !$omp do
  !$homing on home(y(i))
  do i = 1, n
    y(i) = seen + last
    !$omp atomic
    total = total + 1
  end do
  !$omp end parallel
  print *, histogram, most, total, calls, y(3)
end program
