! Distributed arrays that are allocated, with other bounds than before and freed by statements that do not say so.
program al
  implicit none
  real(8), allocatable :: a(:), b(:), c(:, :), q(:)
  integer :: i, j
  !$homing distribute a(block), b(block), c(*, block)
  print *, allocated(b), allocated(c)
  b = [(real(i, 8), i=1, 12)]
  !$omp parallel do
  !$homing on home(b(i))
  do i = 1, 12
    b(i) = b(i) + i
  end do
  call make(a, 14)
  !$omp parallel do
  !$homing on home(a(i))
  do i = 1, 14
    a(i) = a(i) + i
  end do
  c = reshape([(real(i, 8), i=1, 12)], [3, 4])
  !$omp parallel do private(i)
  !$homing on home(c(:, j))
  do j = 1, 4
    do i = 1, 3
      c(i, j) = c(i, j) * 2
    end do
  end do
  b = b(2:7)
  print *, sum(a), sum(b), size(b), allocated(a)
  !$omp parallel do
  !$homing on home(b(i))
  do i = 1, 6
    b(i) = b(i) + 1
  end do
  allocate (q(-2:9)); q = 3
  call move_alloc(q, b)
  !$omp parallel do
  !$homing on home(b(i))
  do i = -2, 9
    b(i) = b(i) + i
  end do
  call move_alloc(a, q)
  print *, sum(b), lbound(b), sum(c), allocated(a), sum(q)
  b = 0
  print *, sum(b), size(b)
contains
  subroutine make(x, n)
    real(8), allocatable, intent(out) :: x(:)
    integer, intent(in) :: n
    allocate (x(n))
    x = 1
  end subroutine
end program
