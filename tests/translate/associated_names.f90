! Other names for distributed arrays, their elements and sections, in serial code; around and inside parallel
! loops, for arrays, elements and indices.
program associated_names
  implicit none
  integer, parameter :: n = 10
  integer :: i
  real(8) :: a(n), b(0:n), t(n), s, c(n), w(n), e(n)
  !$homing distribute a(block), b(block), c(cyclic), e(block)
  !$omp parallel do
  !$homing on home(a(i))
  do i = 1, n
    a(i) = i
  end do
  b = 1
  t = 5
  associate (x => b, k => a(3), part => a(2:8:2), twice => 2*a(4))
    x(0) = k + twice
    part = part + 100
    k = -1
    s = sum(x(1:)) + lbound(x, 1)
  end associate
  associate (a => t)
    a(2) = 7
    s = s + a(1)
  end associate
  associate (y => b)
    do i = 1, n
      if (y(i) > 5) exit
      y(i) = y(i) + a(i)
    end do
  end associate
  w = 3; e = 2
  named: associate (u => a, h => t(2), v => e, &
    & c => w)
    !$omp parallel do
    !$homing on home(u(i))
    do i = 2, n - 1
      associate (left => i - 1, right => i + 1, x => u(i), other => w(i))
        x = v(left)*2 + v(right) + other + c(i)*h
      end associate
    end do
    if (sum(u) < 0) exit named
    s = s + u(4) + c(3)
  end associate named
  associate (d => c)
    !$omp parallel do
    do i = 1, n
      d(i) = i
    end do
    !$omp parallel
    !$omp do
    !$homing on home(d(i))
    do i = 1, n
      d(i) = d(i)*2
    end do
    !$omp end parallel
  end associate
  print '(10f7.1)', a, b, t, s, c, w
end program
