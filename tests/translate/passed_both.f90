module k
  implicit none
contains
  subroutine scale(x, n, f)
    integer :: n, i
    real(8) :: x(n), f
!$omp parallel do
    do i = 1, n
      x(i) = x(i)*f
    end do
  end subroutine
  real(8) function total(x)
    real(8), intent(in) :: x(:)
    integer :: i
    total = 0
!$omp parallel do reduction(+:total)
    do i = 1, size(x)
      total = total + x(i)
    end do
  end function
end module
program p
  use k
  implicit none
  integer, parameter :: n = 40
  integer :: i
  real(8) :: a(n), b(n), c(n)
!$homing distribute a(block), b(cyclic), c(block)
  do i = 1, n
    a(i) = i
    b(i) = 2*i
    c(i) = i
  end do
  call scale(a, n, 2d0)
  call scale(b, n, 3d0)
  call scale(c, n, 3d0)
  print *, total(a), total(b), total(c)
end program
