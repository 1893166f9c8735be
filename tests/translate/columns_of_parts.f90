program chol
  implicit none
  integer, parameter :: n = 18
  real(8), allocatable :: l(:, :)
  real(8) :: d, s
  integer :: i, j, k
  !$homing processors g(1, *)
  !$homing distribute l(cyclic, cyclic(2)) onto g
  allocate (l(n, n))
  do j = 1, n
    do i = 1, n
      l(i, j) = merge(2d0*n, 1d0/(i + j), i == j)
    end do
  end do
  s = 0
  !$omp parallel private(k, d)
  do k = 1, n
    d = sqrt(l(k, k))
    !$omp do reduction(+:s)
    !$homing on home(l(i, k))
    do i = k, n
      l(i, k) = l(i, k)/d
      s = s + l(i, k)
    end do
    !$omp do private(i)
    !$homing nest(j, i), on home(l(i, j))
    do j = k + 1, n
      do i = j, n
        l(i, j) = l(i, j) - l(i, k)*l(j, k)
      end do
    end do
    !$omp do
    !$homing on home(l(k, j))
    do j = k + 1, n
      l(k, j) = 0
    end do
  end do
  !$omp end parallel
  print *, sum(l), s
end program
