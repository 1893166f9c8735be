module grid
  implicit none
  integer, parameter :: dp = kind(1d0), n = 24, m = n/2
  real(dp), save :: u(0:n + 1, m), v(0:n + 1, m), plain(m)
  real(dp) :: c(n)
  !$homing distribute u(block, *), v(block, *)
  !$homing distribute c(cyclic(2))
  real(8), allocatable :: flux(:, :)
  !$homing distribute flux(*, block)
contains
  subroutine init
    integer :: i, j
    do j = 1, m
      do i = 0, n + 1
        u(i, j) = i*j
      end do
      plain(j) = j
    end do
  end subroutine
  subroutine sweep
    integer :: i, j
    !$omp parallel do private(j)
    do i = 1, n
      do j = 1, m
        v(i, j) = u(i - 1, j) + u(i + 1, j) + plain(j)
      end do
    end do
    !$omp parallel do private(j)
    do i = 1, n
      do j = 1, m
        u(i, j) = v(i, j)*0.5d0
      end do
    end do
  end subroutine
  subroutine turned(t)
    integer, intent(in) :: t
    real(dp), save :: kept(n, m) = 1
    integer :: i, j
    !$homing distribute kept(*, block)
    !$homing redistribute v(*, block)
    !$homing redistribute kept(block, *)
    !$omp parallel do private(i)
    !$homing on home(v(:, j))
    do j = 1, m
      do i = 1, n
        v(i, j) = v(i, j) + v(i - 1, j)*t
      end do
    end do
    !$homing redistribute v(block, *)
    !$omp parallel do private(j)
    !$homing on home(kept(i, :))
    do i = 1, n
      do j = 2, m
        kept(i, j) = kept(i, j) + kept(i, j - 1) + i
      end do
    end do
    !$homing redistribute kept(*, block)
    print *, kept(n, m)
  end subroutine
end module
program p
  use grid
  implicit none
  integer :: k
  integer, parameter :: rows = 24
  real(8) :: own(4, m), mine(0:rows + 1), like(0:25)
  !$homing distribute own(*, block)
  !$homing distribute mine(block), like(block)
  v = 0
  allocate (flux(4, m))
  !$omp parallel do
  do k = 1, m
    flux(:, k) = k
    own(:, k) = flux(:, k)*2
  end do
  call init
  do k = 1, 3
    call sweep
    call turned(k)
  end do
  !$omp parallel do
  do k = 1, n
    c(k) = k
  end do
  !$omp parallel do
  do k = 0, rows + 1
    mine(k) = u(k, 1)
    like(k) = mine(k) + 1
    u(k, 2) = like(k)
  end do
  print *, sum(u), sum(v), sum(c), sum(own), mine(3), like(rows)
end program
