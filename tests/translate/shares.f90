! A shared array that one loop reads and the next writes: the threads must wait between. DIST is replaced.
program shares
  implicit none
  integer :: n, i, k, t
  real(8), allocatable :: x(:)
  real(8) :: w(0:40), s
  character(16) :: word
!$homing distribute (DIST) :: x
  call get_command_argument(1, word)
  read (word, *) n
  allocate(x(0:n+1))
  do i = 0, n+1
    x(i) = sin(real(i*i, 8))
    w(i) = i
  end do
  s = 1
!$omp parallel private(k, t)
  do t = 1, 50
!$omp do private(k)
    do i = 1, n
      do k = 1, 3000*mod(i, 2)
        x(i) = x(i)*0.999d0
      end do
      x(i) = x(i) + w(n+1-i) + s
    end do
!$omp do
    do i = 1, n
      w(i) = w(i) + 1
    end do
!$omp single
    x(1) = x(1) + s
!$omp end single
!$omp single
    s = s + 1
!$omp end single
  end do
!$omp end parallel
  print '(*(z17))', x, w(1:n), s
end program
