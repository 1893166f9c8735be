! COMMON blocks in free form: a block of nothing but distributed arrays, with SAVE; one directive for arrays of
! two blocks, which the main program does not name; DIMENSION and lower bounds; a function and an internal
! procedure; procedures of a module.
module kinds
  implicit none
contains
  subroutine fill
    integer, parameter :: n = 9, m = (n + 1)/2 - 1
    real(8) :: u, v, w(3), only
    common /field/ u(-1:n), w, &
                   v(-1:n)
    common /alone/ only(n)
    save /alone/, /field/
!$homing distribute u(block), v(block), &
!$homing& only(cyclic(2))
    integer :: i
    do i = -1, n
      u(i) = i; v(i) = m
    end do
    only = 1
    w = 2
  end subroutine
  function total()
    integer, parameter :: n = 9
    real(8), dimension(-1:n) :: u, v
    real(8) :: w(3), total
    common /field/ u, w, v
    integer :: i
    total = 0
    !$omp parallel do reduction(+:total)
    do i = -1, n
      total = total + v(i)*w(1)
    end do
  end function
end module
program commons
  use kinds
  implicit none
  integer :: t
  real(8) :: found
  call fill
  do t = 1, 3
    call relax
  end do
  found = total()
  print *, found
  call show
end program
subroutine relax
  implicit none
  integer, parameter :: n = 9
  real(8), dimension(-1:n) :: u, v; real(8) :: w(3), only(n)
  common /field/ u, w, v /alone/ only
  integer :: i
  !$omp parallel do
  !$homing on home(u(i))
  do i = 0, n - 1
    v(i) = u(i-1) + u(i+1) + w(2)
  end do
  call inner
contains
  subroutine inner
    integer :: i
    !$omp parallel do
    do i = 0, n - 1
      u(i) = v(i)/2
    end do
    !$omp parallel do
    !$homing on home(only(i))
    do i = 1, n
      only(i) = only(i) + i
    end do
  end subroutine
end subroutine
subroutine show
  implicit none
  integer, parameter :: n = 9
  real(8), dimension(-1:n) :: u, v
  real(8) :: w(3), only
  common /field/ u, w, v /alone/ only(n)
  print *, u, v(3), w
  print *, only
end subroutine
