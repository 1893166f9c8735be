! POINTER arrays of a module and of a procedure that change places, tested by ASSOCIATED, passed on; three in a ring.
module fields
  implicit none
  integer, parameter :: n = 30, m = 8
  real(8), dimension(:, :), pointer :: u => null(), unew => null()
  !$homing distribute u(*, block), unew(*, block)
contains
  subroutine setup
    integer :: j
    if (.not. associated(u)) allocate (u(m, 0:n + 1), unew(m, 0:n + 1))
    !$omp parallel do
    do j = 0, n + 1
      u(:, j) = j
      unew(:, j) = 0
    end do
  end subroutine
  subroutine step(c)
    real(8), intent(in) :: c
    real(8), pointer :: swap(:, :)
    integer :: i, j
    !$omp parallel do private(i)
    do j = 1, n
      do i = 2, m - 1
        unew(i, j) = u(i, j) + c*(u(i, j - 1) - 2*u(i, j) + u(i, j + 1) + u(i - 1, j)/(1 + u(i + 1, j)))
      end do
    end do
    swap => u
    u => unew
    unew => swap
  end subroutine
  real(8) function total(a)
    real(8), intent(in) :: a(:, 0:)
    integer :: j
    total = 0
    !$omp parallel do reduction(+:total)
    do j = 0, size(a, 2) - 1
      total = total + sum(a(:, j))
    end do
  end function
end module
program p
  use fields, only: setup, step, total, u, unew
  implicit none
  integer :: k
  call setup
  do k = 1, 5
    call step(0.125d0)
    print '(i2,3f14.6)', k, total(u), total(unew), u(4, 7)
  end do
  call levels(20)
  if (associated(unew)) deallocate (unew)
  deallocate (u)
contains
  subroutine levels(n)
    integer, intent(in) :: n
    integer, pointer :: a(:), b(:), c(:), t(:)
    integer :: i, k
    !$homing distribute a(cyclic), b(cyclic), c(cyclic)
    allocate (a(n), b(n), c(n))
    !$omp parallel do
    do i = 1, n
      a(i) = i; b(i) = 2*i; c(i) = 0
    end do
    do k = 1, 4
      !$omp parallel do
      do i = 1, n
        c(i) = a(i) + b(i)
      end do
      t => a; a => b; b => c; c => t
    end do
    print *, a(3), b(3), c(n), sum(a + b - c)
    deallocate (a, b, c)
  end subroutine
end program
