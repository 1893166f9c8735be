module m
  implicit none
  integer, parameter :: l = 3
  character(2), dimension(4) :: g*5, h
  !$homing distribute g(block), h(block)
contains
  subroutine put(s, n)
    integer, intent(in) :: n
    character :: s(n)*3
    integer :: i
    !$omp parallel do
    do i = 1, n
      s(i) = s(i)(2:3)//'z'
    end do
  end subroutine
end module
program p
  use m
  implicit none
  integer :: i
  character(2) :: c(6)*(l), e*7, d(6)*5
  !$homing distribute c(block), d(block)
  e = 'abcdefg'
  !$omp parallel do
  do i = 1, 6
    c(i) = 'abc'
    d(i) = e(i:)
  end do
  !$omp parallel do
  do i = 1, 4
    g(i) = 'hello'
    h(i) = 'xyz'
  end do
  call put(c, 6)
  print *, c, d, g, h, e
end program
