program lu
  implicit none
  integer, parameter :: n = 22
  real(8) :: l(n, n)
  integer :: i, j, k
  !$homing distribute l(cyclic(2), cyclic(3))
  do j = 1, n
    do i = 1, n
      l(i, j) = 1d0/(i + j)
      if (i == j) l(i, j) = n
    end do
  end do
  do k = 1, n
    !$omp parallel do
    !$homing on home(l(i, k))
    do i = k + 1, n
      l(i, k) = l(i, k)/l(k, k)
    end do
    !$omp parallel do private(i)
    !$homing nest(j, i), on home(l(i, j))
    do j = k + 1, n
      do i = k + 1, n
        l(i, j) = l(i, j) - l(i, k)*l(k, j)
      end do
    end do
  end do
  print '(f20.12)', sum(l)
end program
