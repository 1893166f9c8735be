! An array that a type statement and DIMENSION declare, beside one that DIMENSION declares alone; a procedure
! in a region that only reads an argument, in one statement with others; EXIT of a named loop behind IF;
! a WRITE to an internal file.
module sweeps
  implicit none
contains
  subroutine sweep(a, b, times)
    real(8), intent(in) :: a(:), times
    real(8), intent(inout) :: b(:)
    integer :: i
    !$omp do
    do i = 2, size(a) - 1
      b(i) = times*(a(i-1) + a(i+1))
    end do
  end subroutine
  subroutine back(a, b)
    real(8), intent(in) :: a(:)
    real(8), intent(inout) :: b(:)
    integer :: i
    !$omp do
    do i = 2, size(a) - 1
      b(i) = a(i-1) - a(i+1)
    end do
  end subroutine
end module
program both_declared
  use sweeps
  implicit real(8) (a-h, o-z)
  dimension real(11), more(11), name(11)
  real(8) real
  character(3) name
!$homing distribute (block) :: real, more, name
  real(8) :: u(11), v(11)
!$homing distribute (block) :: u, v
  do i = 1, 11
    real(i) = i
    more(i) = 12 - i
    u(i) = mod(5*i, 7)
    write (name(i), '(i3)') i*i
  end do
  v = 0
!$omp parallel do private(j)
  do i = 2, 10
    search: do j = 1, 9
      if (real(i) < j) exit search
    end do search
    real(i) = real(i) + more(i-1) + more(i+1) + j
    name(i)(1:1) = '#'
  end do
!$omp parallel private(k)
  do k = 1, 2
    call sweep(u, v, 0.5d0)
    call back(v, u)
  end do
!$omp end parallel
  print '(11f8.1)', real, u, v
  print '(11a4)', name
end program
