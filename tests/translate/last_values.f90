program lp
  implicit none
  integer, parameter :: n = 30
  real(8) :: a(0:n), b(0:n)
  integer :: i, m, k
  character(5) :: c
  type t
    integer :: p, q
  end type
  type(t) :: z
  !$homing distribute a(cyclic(3)), b(cyclic(3))
  a = 0; b = 0; c = 'none'; z = t(0, 0); m = -7
  do k = 1, 3
    !$omp parallel do lastprivate(m, c, z) firstprivate(m) default(none) shared(a, b, k)
    !$homing on home(a(i - 1))
    do i = 1, n - k, 4
      a(i - 1) = i*k
      b(i - 1) = m
      m = i
      write (c, '(i5)') i
      z = t(i, k)
    end do
    print *, m, c, z%p, z%q
  end do
  !$omp parallel default(shared)
  !$omp do lastprivate(m)
  !$homing on home(a(i))
  do i = 5, 4
    a(i) = 1
    m = 99
  end do
  !$omp end do nowait
  !$omp do lastprivate(m) schedule(static)
  !$homing on home(b(i))
  do i = 1, n/2
    b(i) = 1
    m = i
  end do
  !$omp end parallel
  print *, sum(a), m
end program
