! Arrays of a module, allocated by one procedure and worked on by another.
module grids
  implicit none
  integer :: n
  real(8), allocatable :: u(:,:), v(:,:)
!$homing distribute u(*,block), v(*,block)
contains
  subroutine setup()
    allocate(u(0:n+1,0:n+1), v(0:n+1,0:n+1))
    u = 1
    v = 0
    u(:,0) = 3
  end subroutine
  subroutine step()
    integer :: i, j
!$omp parallel do private(i)
    do j = 1, n
      do i = 1, n
        v(i,j) = u(i,j-1) + u(i,j+1) - u(i-1,j)
      end do
    end do
!$omp parallel do
    do j = 1, n
      u(1:n,j) = 0.25d0*v(1:n,j)
    end do
  end subroutine
end module
program p
  use grids, only: n, setup, step, u
  implicit none
  integer :: k
  character(8) :: w
  call get_command_argument(1, w)
  read (w,*) n
  call setup()
  do k = 1, 5
    call step()
  end do
  print '(z16)', u
end program
