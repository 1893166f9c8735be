! Shadows that are still fresh, and those that are not: loops, branches, bounds that change. DIST is replaced.
program fresh
  implicit none
  integer :: n, i, t, lo
  real(8), allocatable :: x(:), y(:)
  character(16) :: word
!$homing distribute (DIST) :: x, y
  call get_command_argument(1, word)
  read (word, *) n
  allocate(x(0:n+1), y(0:n+1))
  do i = 0, n+1
    x(i) = sin(real(i*i, 8))
    y(i) = 0
  end do
!$omp parallel do
  do i = 1, n
    y(i) = x(i-1) + x(i+1)
  end do
  do t = 1, 3
!$omp parallel do
    do i = 1, n
      y(i) = x(i-1) + x(i+1) + y(i)
    end do
!$omp parallel do
    do i = 1, n
      x(i) = y(i)*0.5d0
    end do
  end do
  lo = 3
!$omp parallel do
  do i = lo, n
    y(i) = x(i-1) + x(i+1) + y(i)
  end do
  lo = 1
!$omp parallel do
  do i = lo, n
    y(i) = x(i-1) + x(i+1) + y(i)
  end do
  if (n > 2) then
!$omp parallel do
    do i = 1, n
      x(i) = y(i)*0.5d0
    end do
    if (n > 100) then
!$omp parallel do
      do i = 1, n
        y(i) = x(i-1) + x(i+1) + y(i)
      end do
    end if
!$omp parallel do
    do i = 1, n
      y(i) = x(i-1) + x(i+1) + y(i)
    end do
  end if
  print '(*(z17))', x, y
end program
