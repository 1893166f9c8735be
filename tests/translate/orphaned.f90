module m
  implicit none
  integer, parameter :: n = 20
  real(8), allocatable :: a(:), b(:)
  !$homing distribute a(block), b(block)
contains
  subroutine step(k)
    save
    integer, intent(in) :: k
    integer :: i
    !$omp do
    do i = 2, n - 1
      b(i) = a(i - 1) + a(i + 1) + k
    end do
    call back
  end subroutine
  subroutine back
    integer, save :: i
    !$omp do
    do i = 1, n
      a(i) = b(i)
    end do
    !$omp end do
    !$omp single
    a(1) = a(1) + 1
    !$omp end single
  end subroutine
end module
program p
  use m
  implicit none
  integer :: k, i
  allocate (a(n), b(n))
  a = 1; b = 0
  !$omp parallel private(k)
  do k = 1, 60
    call step(k)
    !$omp do
    do i = 1, n
      a(i) = a(i) + 1
    end do
  end do
  !$omp end parallel
  print *, sum(a), sum(b)
end program
