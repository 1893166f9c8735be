! Subscripts with the counter of a loop inside or around, between numbers: weights, neighbours, backwards, in a CYCLIC dimension.
program inner_counters
  implicit none
  integer, parameter :: n = 23, m = 12, r = 2
  real(8) :: a(n, m), b(n, m), c(n, m), w(-r:r)
  integer :: i, j, k, l
  !$homing distribute a(cyclic(3), block), b(cyclic(3), block), c(cyclic(3), block)
  w = [0.1d0, 0.2d0, 0.4d0, 0.2d0, 0.1d0]
  !$omp parallel do collapse(2)
  do j = 1, m
    do i = 1, n
      a(i, j) = i*i + j
      b(i, j) = 0
      c(i, j) = 0
    end do
  end do
  !$omp parallel do private(i, k) collapse(2)
  !$homing on home(b(i, j))
  do j = 3, m - 2
    do i = 1 + r, n - r
      do k = -r, r
        b(i, j) = b(i, j) + w(k)*a(i + k, j) - a(i + r, j)
      end do
    end do
  end do
  !$omp parallel do private(i, k, l) collapse(2)
  !$homing on home(c(i, j))
  do j = 1, m
    do i = 1, n
      do l = 1, -1, -1
        if (j + l < 1 .or. j + l > m) cycle
        do k = 0, 2
          if (i + k - 1 < 1) cycle
          if (i - 1 + k > n) exit
          c(i, j) = c(i, j) + b(i + k - 1, j - l + 2*l)*(k + 1)
        end do
      end do
    end do
  end do
  do k = 1, 3
    !$omp parallel do collapse(2)
    !$homing on home(a(i, j))
    do j = 1 + r, m - r
      do i = 4, n
        a(i, j) = a(i, j)/2 + c(i - k, j)
      end do
    end do
  end do
  print '(f16.6)', sum(a)
  print '(3f16.6)', sum(b), sum(c), c(n, m)
end program
