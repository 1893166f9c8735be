program p
  implicit none
  integer, parameter :: n = 36
  integer :: i, j, k, ptr(n + 1), col(3*n), h(n), m
  real(8) :: a(n, n), b(n, n), c(n, n), x(n), y(n), val(3*n), t, face(0:n), other(n, n), square(n, n)
!$homing distribute face(block), other(cyclic(2), block), square(block, block)
!$homing distribute a(*, block), b(*, block), c(*, block), x(block), y(block), h(block)
!$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      a(i, j) = merge(2d0, 1d0/(i + j), i == j)
      b(i, j) = i - j
      c(i, j) = 0
    end do
    x(j) = j
    y(j) = 0
  end do
  face = [(i, i = 0, n)]
  other = 3
  do i = 1, n
    h(i) = mod(i*5, n) + 1
    ptr(i) = 3*i - 2
    col(3*i - 2:3*i) = [i, mod(i, n) + 1, n + 1 - i]
    val(3*i - 2:3*i) = [2d0, -1d0, 0.5d0]
  end do
  ptr(n + 1) = 3*n + 1
!$omp parallel do private(i, k)
!$homing on home(c(:, j))
  do j = 1, n
    do i = 1, n
      do k = 1, n
        c(i, j) = c(i, j) + a(i, k)*b(k, j)
      end do
    end do
  end do
  print *, sum(c), c(3, 7), sum(matmul(a, b) - c)
!$omp parallel do private(k)
!$homing on home(y(i))
  do i = 1, n
    do k = ptr(i), ptr(i + 1) - 1
      y(i) = y(i) + val(k)*x(col(k))
    end do
    y(i) = y(i) + x(n + 1 - i) + x(h(3)) + x(h(i)) + x(mod(i, n) + 1)
  end do
  print *, sum(y), y(1), y(n)
!$omp parallel private(t)
  t = x(h(3)) + x(h(h(5)))
!$omp do
!$homing on home(y(i))
  do i = 1, n
    y(i) = y(i) + t
  end do
!$omp end parallel
  print *, sum(y), y(1), y(n)
!$omp parallel do
!$homing on home(y(i))
  do i = 1, n
    y(i) = y(i) + face(i)*face(i - 1) + other(i, 2)
  end do
  print *, sum(y), y(1), y(n)
!$omp parallel do collapse(2)
  do j = 1, n
    do i = 1, n
      square(i, j) = y(i) - x(j)
    end do
  end do
  print *, sum(square), square(2, n)
end program
