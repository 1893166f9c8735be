program aa
  implicit none
  real(8), allocatable :: a(:), b(:), c(:)
  integer :: i, n
  !$homing distribute a(block), b(block)
  n = 11
  allocate (a(n), b(0:n + 1), stat=i)
  a = [(i*1d0, i=1, n)]
  b = 3
  call double(a)
  a = a(2:8)
  print *, size(a), sum(a)
  a = [a, 100d0]
  print *, size(a), sum(a)
  c = a
  deallocate (a)
  allocate (a, mold=c)
  a = c
  !$omp parallel do
  do i = 1, size(a)
    a(i) = a(i) + 1
  end do
  call grow(a)
  print *, size(a), sum(a), lbound(b), ubound(b)
contains
  subroutine double(x)
    real(8), intent(inout) :: x(:)
    integer :: k
    !$omp parallel do
    do k = 1, size(x)
      x(k) = 2*x(k)
    end do
  end subroutine
  subroutine grow(x)
    real(8), allocatable, intent(inout) :: x(:)
    real(8), allocatable :: y(:)
    allocate (y(2*size(x)))
    y = 0
    y(:size(x)) = x
    call move_alloc(y, x)
  end subroutine
end program
