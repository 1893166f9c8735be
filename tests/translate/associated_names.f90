! Other names for distributed arrays, their elements and sections, in serial code.
program associated_names
  implicit none
  integer, parameter :: n = 10
  integer :: i
  real(8) :: a(n), b(0:n), t(n), s
  !$homing distribute a(block), b(block)
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
  print '(10f7.1)', a, b, t, s
end program
