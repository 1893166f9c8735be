module store
  implicit none
  real(8), allocatable :: u(:, :), v(:, :)
  !$homing distribute u(*, block), v(*, block)
contains
  subroutine make(n)
    integer, intent(in) :: n
    if (allocated(u)) deallocate (u)
    allocate (u(n, n), source=1d0)
    v = u*2
  end subroutine
end module
program aa
  use store
  implicit none
  real(8), allocatable :: t(:, :)
  integer :: i, j, k
  do k = 4, 9, 5
    call make(k)
    !$omp parallel do private(i)
    do j = 2, k - 1
      do i = 1, k
        u(i, j) = v(i, j - 1) + v(i, j + 1) + i
      end do
    end do
    print *, sum(u), sum(v), size(u), shape(v)
    allocate (t(k, k))
    t = u
    call move_alloc(t, v)
    print *, sum(v), allocated(t)
  end do
end program
