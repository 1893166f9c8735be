module fields
  implicit none
  integer :: n = 40
  real(8), allocatable :: u(:), v(:)
  !$homing distribute u(block), v(block)
contains
  subroutine setup
    allocate (u(0:n + 1), v(0:n + 1))
    u = 0
    v = 0
    u(0) = 1
    v(0) = 1
  end subroutine
end module
