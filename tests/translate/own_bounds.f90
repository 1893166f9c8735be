! Bounds whose variables change behind the declaration, inquiries beside arrays that are passed on, and elements
! that each thread reads by its number.
module kernels
  implicit none
contains
  subroutine scale(a, n, by)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    real(8), intent(in) :: by
    integer :: i
    !$omp parallel do
    do i = 1, n
      a(i) = a(i)*by
    end do
  end subroutine
  real(8) function norm(a, n)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n)
    integer :: i
    norm = 0
    !$omp parallel do reduction(+:norm)
    do i = 1, n
      norm = norm + a(i)**2
    end do
  end function
  real(8) function columns(a, n, m)
    integer, intent(in) :: n, m
    real(8), intent(in) :: a(n, m)
    integer :: j
    columns = 0
    !$omp parallel do reduction(+:columns)
    do j = 1, m
      columns = columns + a(1, j) - a(n, j)
    end do
  end function
  subroutine changes(n, at)
    integer, intent(inout) :: n
    integer, intent(in) :: at(:)
    real(8) :: a(n), b(n)
    integer :: i
    !$homing distribute a(block), b(block)
    n = 7
    !$omp parallel do
    do i = 1, size(a)
      a(i) = i
    end do
    !$omp parallel do
    do i = 1, n
      b(i) = a(at(i)) + a(i + 1)
    end do
    print '(2f10.2,i4)', norm(a, size(a)), sum(b(1:n)), size(a)
    call tell(a, lbound(a, 1), ubound(a, dim=1), shape(a), size(a, kind=8))
  end subroutine
  subroutine tell(x, low, high, extents, count)
    real(8), intent(in) :: x(:)
    integer, intent(in) :: low, high, extents(:)
    integer(8), intent(in) :: count
    print *, low, high, extents, count, size(x)
  end subroutine
  subroutine check(a, n, at, wrong)
    integer, intent(in) :: n, at
    real(8), intent(in) :: a(n)
    integer, intent(inout) :: wrong
    if (nint(a(at)) /= at) wrong = wrong + 1
  end subroutine
  subroutine checked(a, n, me, wrong)
    integer, intent(in) :: n, me
    real(8), intent(in) :: a(n)
    integer, intent(inout) :: wrong
    call check(a, n, me + 1, wrong)
  end subroutine
end module
program own_bounds
  use kernels
  use omp_lib, only: omp_get_thread_num
  implicit none
  real(8), allocatable :: u(:), w(:, :)
  integer :: i, j, n, at(40), me, wrong
  !$homing distribute u(block), w(*, block)
  allocate (u(30), w(4, 12))
  !$omp parallel do
  do i = 1, size(u)
    u(i) = i
  end do
  !$omp parallel do private(i)
  do j = 1, size(w, 2)
    do i = 1, size(w, 1)
      w(i, j) = i*j
    end do
  end do
  call scale(u, size(u), 0.5d0)
  print '(2f12.4)', norm(u, size(u)), norm(u, ubound(u, 1)) + u(3)
  if (norm(u, size(u)) > 10) call scale(u, size(u, 1), 0.1d0)
  do while (norm(u, size(u)) > 1)
    call scale(u, size(u), 0.5d0)
  end do
  print '(3f12.4)', norm(u, size(u)), columns(w, size(w, 1), size(w, 2)), columns(w, 4, size(w)/4) + u(3)
  n = 40
  at = [(41 - i, i=1, 40)]
  call changes(n, at)
  !$omp parallel do
  do i = 1, size(u)
    u(i) = i
  end do
  wrong = 0
  !$omp parallel private(me, j) reduction(+:wrong)
  me = omp_get_thread_num()
  do j = 1, 2
    if (nint(u(me + j)) /= me + j) wrong = wrong + 1
  end do
  call checked(u, 30, me, wrong)
  !$omp end parallel
  print *, wrong
end program
