! Own elements and one that all parts read; the matrix is static. DIST is replaced.
program local
  implicit none
  integer, parameter :: m = 9
  integer :: n, i, j, k, q
  real(8) :: x(m, m), y(m, m), w(m), piv
  character(16) :: word
!$homing distribute x(DIST)
!$homing align y(i, j) with x(i, j)
  call get_command_argument(1, word)
  read (word, *) n
  n = min(n, m)
!$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      x(i,j) = cos(real(i + 2*j*j, 8))
      y(i,j) = 0
    end do
  end do
!$omp parallel private(k, i, q, piv)
  do k = 1, n
    piv = x(k,k)
!$omp do private(q)
    do j = 1, n
      q = j*3
      do i = 1, n
        if (i == 2) cycle
        y(i,j) = y(i,j) + x(i,j)*x(1,k)/(2 + piv) + q
      end do
    end do
!$omp end do nowait
!$omp single
    x(k,k) = x(k,k) + 1
!$omp end single
  end do
!$omp end parallel
  w = 0
  do j = 1, n
    do i = 1, n
      w(i) = w(i) + y(i,j)
    end do
  end do
  print '(*(z17))', w, y(1:n,1:n), x(1:n,1:n)
end program
