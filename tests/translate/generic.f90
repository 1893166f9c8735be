module m
  implicit none
  integer, parameter :: n = 18
  real(8), allocatable :: x(:), y(:)
  !$homing distribute x(block), y(block)
  interface smooth
    module procedure smooth_one
  end interface
contains
  subroutine smooth_one(a, b)
    real(8), intent(in) :: a(:)
    real(8), intent(inout) :: b(:)
    integer :: i
    !$omp parallel do
    do i = 2, size(a) - 1
      b(i) = (a(i - 1) + a(i + 1))/2
    end do
  end subroutine
  pure function peak(v) result(p)
    real(8), intent(in) :: v(:)
    real(8) :: p
    p = maxval(v)
  end function
end module
program d4
  use m
  implicit none
  integer :: k
  allocate (x(n), y(n))
  x = [(real(k, 8)**2, k=1, n)]
  y = 0
  do k = 1, 3
    call smooth(x, y)
    call smooth_one(y, x)
  end do
  print *, peak(x), peak(y), sum(x)
end program
