module scopes
  implicit none
  integer :: u(21)
  !$homing distribute u(cyclic)
contains
  subroutine number
    integer :: i
    !$omp parallel do
    do i = 1, 21
      u(i) = i
    end do
  end subroutine
end module

subroutine twice
  implicit none
  integer :: v(17), i
  common /shared/ v
  !$omp parallel do
  do i = 1, 17
    v(i) = 2 * i
  end do
end subroutine

program p
  use scopes
  implicit none
  integer :: v(17), i, k
  integer, allocatable :: b(:), c(:)
  common /shared/ v
  !$homing distribute v(cyclic(2)), b(block), c(block)
  call number
  call twice
  print *, sum(u), sum(v)
  do k = 3, 4
    allocate (integer(kind(k)) :: b(0:k), c(size([1, 2, 3])))
    !$omp parallel do
    do i = 0, k
      b(i) = i
    end do
    c = k
    print *, sum(b), lbound(b), size(b), c
    deallocate (b, c)
  end do
end program
