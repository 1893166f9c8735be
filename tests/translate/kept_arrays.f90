module m
  implicit none
  private
  integer, parameter, public :: n = 64
  real(8), public :: a(n, n), b(n, n)
  real(8), target, public :: e(n)
  real(8), pointer, public :: p(:)
  !$homing distribute a(*, block), b(*, block), e(block), p(block)
  public :: step, orph
contains
  subroutine step
    real(8), save :: w(n)
    !$homing distribute w(cyclic(2))
    integer :: i, j
    !$omp parallel do private(i)
    !$homing on home(b(:, j))
    do j = 2, n - 1
      do i = 2, n - 1
        b(i, j) = a(i, j-1) + a(i, j+1) + e(j)
      end do
    end do
    !$omp parallel do
    !$homing on home(w(j))
    do j = 1, n
      w(j) = j
      e(j) = e(j) + w(j)
    end do
  end subroutine
  subroutine orph
    integer :: i
    !$omp do
    !$homing on home(p(i))
    do i = lbound(p, 1), ubound(p, 1)
      p(i) = p(i)*2
    end do
  end subroutine
end module
program main
  use m, only: a, b, e, p, n, step, orph
  implicit none
  real(8), pointer :: q(:)
  integer :: k, i
  !$homing distribute q(block)
  a = 1; b = 0; e = 2
  allocate (p(0:n))
  p = 3
  do k = 1, 3
    call step
    !$omp parallel do
    !$homing on home(a(1, i))
    do i = 1, n
      a(1, i) = b(1, i)*0.5d0
    end do
    !$omp parallel
    call orph
    !$omp end parallel
    q => p
    !$omp parallel do
    !$homing on home(q(i))
    do i = 1, n
      q(i) = q(i) + 1
    end do
    allocate (p(n + k))
    p = k
  end do
  print *, sum(a), sum(b), sum(e), sum(q), sum(p)
end program
