! Functions that work on parts, and elements beside them in the same statement.
module norms
  implicit none
  integer, parameter :: dp = kind(1d0)
  integer :: calls = 0
  interface extreme
    module procedure most
  end interface
contains
  real(dp) function total(x, w)
    real(dp), intent(in) :: x(:)
    real(dp), intent(in), optional :: w
    !$homing distribute x(block)
    integer :: k
    total = 0
    !$omp parallel do reduction(+:total)
    do k = 1, size(x)
      total = total + x(k)
    end do
    if (present(w)) total = total*w
  end function
  function most(x) result(m)
    real(dp), intent(in) :: x(:)
    real(dp) :: m
    !$homing distribute x(block)
    integer :: k
    calls = calls + 1
    m = -huge(m)
    !$omp parallel do reduction(max:m)
    do k = 1, size(x)
      m = max(m, x(k))
    end do
  end function
  subroutine tell(x, y)
    real(dp), intent(in) :: x, y
    print *, 'tells', x, y
  end subroutine
end module
program function_values
  use norms, only: total, most, extreme, tell
  implicit none
  integer, parameter :: n = 41
  integer :: i, k
  real(8) :: a(n), b(n), s
  !$homing distribute a(block), b(block)
  !$omp parallel do
  do i = 1, n
    a(i) = i; b(i) = 2*i
  end do
  print *, total(a), a(1), 'total(a)', b(n)
  print *, extreme(a), a(3), extreme(b) + b(4)
  b(2) = total(a) + a(2)
  print *, total(a, 2d0) + sum(b), total(x=b), maxval(a), (a(i), i = 1, 5)
  s = most(b)*total(a, w=3d0) - b(3) + sum(a(1:n:3))
  do k = 1, 3
    a(k) = a(k) + total(a)/n
    if (k > 1) then
      s = s + most(a) - a(n)
    end if
  end do
  call tell(total(a), a(3))
  write (*, '(2f12.3)') a(int(most(a)/most(a))), s
end program
