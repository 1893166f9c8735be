program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, k, j, m(n)
  real(8) :: a(n), b(n), t
!$homing distribute a(block), b(block), m(block)
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = mod(i*7, 11) + 0.5d0
    b(i) = i
    m(i) = i
  end do
  do i = m(1), maxval(m)/4, 2
   if (sum(a) > 30 .and. a(2) > 0) then
!$omp parallel do
!$homing on home(b(k))
    do k = 1, n
      b(k) = a(k) + i
    end do
   else if (i > 3) then
    print *, 'no'
   end if
   if (b(i) < -4) exit
  end do
  print *, b(1), b(n)
  k = 0
  outer: do while (maxval(abs(a - b)) > 1 .and. k < 50)
    k = k + 1
    if (k == 2) cycle outer
!$omp parallel do
!$homing on home(b(i))
    do i = 1, n
      b(i) = b(i) + (a(i) - b(i))/4
    end do
    if (minval(b) > 1000) exit
  end do outer
  print *, k, b(1), b(n)
  select case (maxloc(a, 1))
  case (1)
    print *, 'one'
  case (2:)
!$omp parallel do
!$homing on home(b(i))
    do i = 1, n
      b(i) = 2*b(i)
    end do
  end select
  print *, b(1), b(n)
  do 10 while (b(1) > 1)
!$omp parallel do
!$homing on home(b(i))
    do i = 1, n
      b(i) = b(i)/2
    end do
10 continue
  print *, b(1), b(n)
  if (b(1) > 0) call halve(b)
  print *, b(1), b(n)
contains
  subroutine halve(x)
    real(8) :: x(:)
    integer :: i
!$omp parallel do
!$homing on home(x(i))
    do i = 1, size(x)
      x(i) = x(i)/2
    end do
  end subroutine
end program
