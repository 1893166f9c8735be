! Loops that share their lines, and statements that only OpenMP compiles.
program one
  implicit none
  integer, parameter :: n = 21, m = 9
  integer :: i, j; real(8) :: s
  real(8), allocatable :: a(:,:), b(:,:)
!$homing distribute a(cyclic, cyclic(3)), b(cyclic, cyclic(3))
  allocate(a(n, m)); allocate(b(n, m)); s = 0
!$omp parallel do private(i)
  do j = 1, m; do i = 1, n; a(i,j) = i + 10*j; b(i, j) = 0; end do; end do
!$omp parallel do private(i)
  do j = 2, m-1; do i = 2, n-1
    b(i,j) = a(i-1,j) + &
      a(i+1,j) + a(i,j-1); end do; end do; s = 2
!$omp parallel do private(i) reduction(+:s)
  do j = 1, m
  do i = 1, n; s = s + b(i,j); end do
  end do; if (s > 3) then; a(1,1) = 3; else; s = 1; end if; a(2,2) = 2
!$omp parallel
!$omp do private(i)
  do j = 1, m; do 10 i = 1, n; 10 a(i,j) = a(i,j) + 1; end do
!$omp end parallel
  !$ a(3,3) = &
  !$ & a(4,4) + 1; b(1,1) = a(2,2)
  print *, a, b; print *, s ! a; b
end program
