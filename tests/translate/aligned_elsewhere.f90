module geo
  implicit none
  integer, parameter :: n = 40
  real(8) :: a(n)
  real(8), allocatable :: d(:)
!$homing distribute a(block), d(block)
end module
module other
  use geo, only: n, d, a
  implicit none
  real(8) :: b(n)
  real(8), allocatable :: e(:)
!$homing align b(i) with a(i)
!$homing align e(i) with d(i)
end module
program p
  use geo, only: a, n
  use other
  implicit none
  integer :: i
  real(8) :: c(n)
!$homing align c(i) with a(i)
  allocate (d(n))
  allocate (e(n - 1))
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i
    b(i) = 2*i
    c(i) = 3*i
    d(i) = i
  end do
  b(1) = 7
!$omp parallel do
!$homing on home(e(i))
  do i = 1, n - 1
    e(i) = d(i + 1) + a(i) + b(i)
  end do
  print *, sum(a), sum(b), sum(c), sum(e)
  call s
contains
  subroutine s
    real(8) :: f(n)
!$homing align f(i) with a(i)
!$omp parallel do
!$homing on home(f(i))
    do i = 1, n
      f(i) = a(i)
    end do
    print *, sum(f)
  end subroutine
end program
