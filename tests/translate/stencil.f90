! Neighbours in all directions, procedures in serial code, reductions, a SINGLE on whole arrays. DIST is replaced.
module work
  implicit none
contains
  subroutine smooth(n, x, y, total)
    integer, intent(in) :: n
    real(8), intent(in) :: x(0:n+1, 0:n+1)
    real(8), intent(out) :: y(0:n+1, 0:n+1)
    real(8), intent(inout) :: total
    integer :: i, j
!$omp parallel do private(i) reduction(+:total)
    do j = 1, n
      do i = 1, n
        y(i,j) = 0.2d0*(x(i,j) + x(i-1,j-1) + x(i+1,j+1) + x(i-1,j+1) + x(i+1,j-1))
        total = total + y(i,j)
      end do
    end do
  end subroutine
  subroutine dump(n, x)
    integer, intent(in) :: n
    real(8), intent(in) :: x(0:n+1, 0:n+1)
    integer :: j
    do j = 0, n+1
      print '(*(z17))', x(:,j)
    end do
  end subroutine
end module
program stencil
  use work
  implicit none
  integer :: n, i, j, k
  real(8) :: total, top
  real(8), allocatable :: x(:,:), y(:,:)
  character(16) :: word
!$homing distribute (DIST) :: x, y
  call get_command_argument(1, word)
  read (word, *) n
  allocate(x(0:n+1,0:n+1), y(0:n+1,0:n+1))
  do j = 0, n+1
    do i = 0, n+1
      x(i,j) = sin(real(i*i + 3*j, 8))
    end do
  end do
  y = x
  total = 0
  top = -huge(top)
  do k = 1, 3
    call smooth(n, x, y, total)
    call smooth(n, y, x, total)
  end do
!$omp parallel
!$omp do reduction(max:top)
  do j = n, 1, -1
    do i = 1, n
      top = max(top, x(i,j))
    end do
  end do
!$omp end do
!$omp single
  y(:,0) = x(:,n+1) + top
  print *, 'inside', top
!$omp end single
!$omp end parallel
  call dump(n, x)
  call dump(n, y)
  print *, sum(x)
  print '(a,es24.16)', 'total', total
  deallocate(x)
  deallocate(y)
end program
