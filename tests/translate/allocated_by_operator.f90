! An operator of the program's own gives a value of another shape than its operands have.
module m
  implicit none
  real(8), allocatable :: u(:), r(:)
  !$homing distribute u(block), r(block)
  interface operator(.cat.)
    module procedure joined
  end interface
contains
  function joined(x, y) result(z)
    real(8), intent(in) :: x(:), y(:)
    real(8) :: z(size(x) + size(y))
    z = [x, y]
  end function
end module
program p
  use m
  implicit none
  integer :: i, n = 8
  allocate (u(n), r(n))
  !$omp parallel do
  do i = 1, n
    u(i) = i; r(i) = 2*i
  end do
  u = u .cat. r
  !$omp parallel do
  do i = 1, 16
    u(i) = u(i) + i
  end do
  print *, size(u), sum(u), u
end program
