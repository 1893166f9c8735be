program p
  implicit none
  integer, parameter :: n = 14
  integer :: i, j, k, last(n)
  real(8) :: a(n, n), b(n, n)
  !$homing distribute a(cyclic, *), b(cyclic, *)
  a = 0
  !$omp parallel do private(i)
  !$homing on home(a(i, :))
  do j = 1, n
    do i = n, 1, -1
      a(i, j) = i + 3*j
      b(i, j) = 1
    end do
  end do
  !$omp parallel do private(i)
  do j = 1, n
    do i = n - 1, 2, -2
      b(i, j) = a(i - 1, j) + a(i + 1, j)
    end do
  end do
  print *, sum(a), sum(b), b(3, 4), b(5, 5)
end program
