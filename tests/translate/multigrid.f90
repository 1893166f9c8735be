! Loops over every second element go to the owners of those: restriction and prolongation, red and black.
program multigrid
  implicit none
  integer, parameter :: n = 32, m = 16
  real(8) :: u(0:n, 0:n), c(0:m, 0:m), s, v(0:n, 0:n), w(0:n)
  !$homing distribute u(block, block), c(block, block), v(block, block), w(block)
  integer :: i, j, k, last
  s = 0
  !$omp parallel do collapse(2)
  do j = 0, n
    do i = 0, n
      u(i, j) = i + 2*j
      v(i, j) = i*j
    end do
  end do
  do k = 1, 3
    !$omp parallel do collapse(2)
    do j = 1, m - 1
      do i = 1, m - 1
        c(i, j) = u(2*i, 2*j) + 0.5d0*(u(2*i - 1, 2*j) + u(2*i + 1, 2*j + 1))
      end do
    end do
    !$omp parallel do collapse(2)
    do j = 1, m - 1
      do i = 1, m - 1
        u(2*i, 2*j) = u(2*i, 2*j) + c(i, j)
        u(2*i + 1, 2*j) = c(i, j)*0.5d0 + u(2*i - 1, 2*j - 1)
        u(2*i, 2*j + 1) = c(i, j)*0.25d0 + u(2*i + 1, 2*j + 1)
      end do
    end do
    !$omp parallel do private(i)
    !$homing nest(j, i), on home(u(2*i, 2*j))
    do j = m - 1, 1, -1
      do i = 1, m - 1
        u(2*i, 2*j) = 0.5d0*u(2*i, 2*j) + u(2*i - 1, 2*j - 1)*0.01d0
      end do
    end do
    !$omp parallel do private(i)
    !$homing nest(j, i), on home(u(i + 30, j))
    do j = 0, n
      do i = max(-30, j - 99), n - 31 ! varies: whatever lies within the arrays
        u(i + 30, j) = u(i + 30, j) + v(i + 31, j)
      end do
    end do
    !$omp parallel do reduction(+:s)
    do i = 0, m
      s = s + w(2*i)
    end do
    !$omp parallel do lastprivate(last) reduction(+:s)
    do i = 1, m - 1
      w(2*i) = i
      w(2*i + 1) = 2*i
      last = 7*i
      s = s + w(2*i)
    end do
    !$omp parallel do
    do i = 0, m - 1
      w(2*i) = w(2*i + 1)*2 + w(2*i)
    end do
    !$omp parallel
    !$omp do
    do i = 0, n
      w(i) = w(i) + 1
    end do
    !$omp do
    do i = 1, m - 1
      w(2*i) = w(2*i - 1) + w(2*i + 1)
    end do
    !$omp do reduction(max:s)
    do i = 0, m
      s = max(s, w(2*i))
    end do
    !$omp end parallel
  end do
  print '(3es24.14, i6)', sum(u), sum(w), s, last
end program
