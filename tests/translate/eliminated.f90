program gj
  implicit none
  integer, parameter :: n = 12
  real(8) :: a(n, n + 1), f
  integer :: d(n, n), i, j, k
  !$homing distribute a(block, *), d(*, cyclic)
  do j = 1, n + 1
    do i = 1, n
      a(i, j) = 1d0/(i + j) + merge(3, 0, i == j)
      if (j <= n) d(i, j) = mod(i*7 + j*j, 23) + 1
    end do
  end do
  do k = 1, n
    f = a(k, k)
    !$omp parallel do private(j)
    do i = 1, n
      if (i /= k) then
        do j = n + 1, k, -1
          a(i, j) = a(i, j) - a(i, k)*a(k, j)/f
        end do
      end if
    end do
    !$omp parallel do private(i)
    do j = 1, n
      do i = 1, n
        d(i, j) = min(d(i, j), d(i, k) + d(k, j))
      end do
    end do
  end do
  print *, (a(i, n + 1)/a(i, i), i = 1, n), sum(d)
end program
