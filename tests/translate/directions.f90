! Alternating directions: the array is dealt out anew in a loop, in a branch, and passed on in between; and by sizes that change.
module sweeps
  implicit none
contains
  subroutine along_rows(n, u)
    integer, intent(in) :: n
    real(8), intent(inout) :: u(0:n+1, 0:n+1)
    integer :: i, j
!$omp parallel do private(j)
    do i = 1, n
      do j = 1, n
        u(i,j) = 0.5d0*(u(i,j) + u(i,j-1))
      end do
    end do
  end subroutine
end module
program directions
  use sweeps
  implicit none
  integer :: n, i, j, t, sizes(8)
  real(8), allocatable :: u(:,:), v(:,:), w(:)
  character(16) :: word
!$homing distribute u(*, block), v(block, *), w(block)
  call get_command_argument(1, word)
  read (word, *) n
  allocate(u(0:n+1,0:n+1), v(0:n+1,0:n+1), w(0:n+1))
  do j = 0, n+1
    w(j) = j
    do i = 0, n+1
      u(i,j) = sin(real(i*i + 3*j, 8))
      v(i,j) = 0
    end do
  end do
  do t = 1, 3
!$omp parallel do private(i)
    do j = 1, n
      do i = 1, n
        u(i,j) = 0.5d0*(u(i,j) + u(i-1,j))
      end do
    end do
!$homing redistribute u(block, *)
!$omp parallel do private(j)
    do i = 1, n
      do j = 1, n
        v(i,j) = v(i,j) + u(i-1,j) + u(i+1,j)
      end do
    end do
    call along_rows(n, u)
    if (t == 2) then
!$homing redistribute u(cyclic, *)
!$omp parallel do private(j)
      do i = 1, n
        do j = 1, n
          u(i,j) = u(i,j) + t
        end do
      end do
!$homing redistribute u(block, *)
    end if
!$homing redistribute u(*, block)
    sizes = 0
    sizes(1:2) = [t, n+2-t]
    if (n == 1) sizes(1:2) = [1, 2]
!$homing redistribute w(gen_block(sizes))
!$omp parallel do
    do i = 1, n
      w(i) = w(i) + 1
    end do
!$homing redistribute w(block)
  end do
!$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      u(i,j) = u(i,j) + i
    end do
  end do
  print '(*(z17))', u, v, w
end program
