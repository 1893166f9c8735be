program g
  implicit none
  integer, parameter :: n = 30
  real(8) :: a(n), b(n), x
  integer :: i, k
  !$homing distribute a(block), b(cyclic)
  do i = 1, n
    a(i) = i
    b(i) = 0
  end do
  x = total()
  do k = 1, 3
    call sweep
    if (total() > 10) then
      b(k) = b(k) + 1
    end if
    print *, k, total()
  end do
  a(1) = 7
  print *, sum(a), sum(b), x
contains
  subroutine sweep
    integer :: i
    !$omp parallel do
    do i = 2, n
      a(i) = a(i) + 1
    end do
    call inner(a)
  end subroutine
  subroutine inner(y)
    real(8), intent(inout) :: y(n)
    integer :: i
    !$omp parallel do
    do i = 1, n - 1
      y(i) = y(i)*0.5d0
    end do
  end subroutine
  real(8) function total()
    total = sum(a) + sum(b)
  end function
end program
