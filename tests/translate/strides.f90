! Neighbours of two arrays, loops downwards and in steps, writes into neighbours. DIST is replaced.
program strides
  implicit none
  integer :: n, i, k
  real(8), allocatable :: x(:), y(:), z(:)
  character(16) :: word
!$homing distribute (DIST) :: x, y, z
  call get_command_argument(1, word)
  read (word, *) n
  allocate(x(-1:n+2), y(-1:n+2), z(-1:n+2))
  do i = -1, n+2
    x(i) = sin(real(i*i, 8))
    y(i) = 0
    z(i) = i
  end do
  do k = 1, 2
!$omp parallel
!$omp do
    do i = n, 1, -1
      y(i+2) = x(i) + x(i-2) - z(i)*z(i-2)
    end do
!$omp do
    do i = 1, n, 2
      x(i) = y(i+1)
      if (mod(i, 3) == 0) z(i-1) = y(i)
    end do
!$omp do
    do i = n+1, 2, -3
      z(i) = x(i-1)*x(i+1) + z(i)
    end do
!$omp do
    do i = 1, n, 1
      y(i) = (x(i-1) + z(i-1))*(x(i+1) + z(i+1))
    end do
!$omp do
    do i = 1, n, k
      x(i) = y(i-1) + k
    end do
!$omp do
    do i = n, 2, -k
      z(i-1) = y(i) - x(i)
    end do
!$omp end parallel
  end do
  print '(*(z17))', x, y, z
end program
