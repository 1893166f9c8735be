! Loops that write own elements and neighbours, some of each: a part sends back only what it has changed.
program changed_neighbours
  implicit none
  integer, parameter :: n = 14
  integer :: a(n + 1), p(n), q(n), s(n), c(n), m(n, n), i, j, it, t
  !$homing distribute a(block), p(block), q(block), s(block), c(cyclic(2)), m(*, block)
  a = 99
  !$omp parallel do
  !$homing on home(a(i))
  do i = 1, n
    a(i) = i
    if (i == n) a(i + 1) = -5
  end do
  do i = 1, n
    p(i) = i
    q(i) = -i
    c(i) = mod(i*5, 17)
    m(:, i) = i
  end do
  s = c
  !$omp parallel do
  do i = 1, n - 1, 2
    q(i) = p(i)
    q(i + 1) = p(i + 1)
  end do
  do it = 1, n ! odd-even transposition
    !$omp parallel do private(t)
    !$homing on home(s(i))
    do i = 1 + mod(it, 2), n - 1, 2
      if (s(i) > s(i + 1)) then
        t = s(i)
        s(i) = s(i + 1)
        s(i + 1) = t
      end if
    end do
    !$omp parallel do private(t)
    !$homing on home(c(i))
    do i = 1 + mod(it, 2), n - 1, 2
      if (c(i) < c(i + 1)) then
        t = c(i)
        c(i) = c(i + 1)
        c(i + 1) = t
      end if
    end do
    !$omp parallel do private(i)
    !$homing on home(m(:, j))
    do j = 2 + mod(it, 3), n - 1, 3
      do i = 1, n
        if (mod(i + j, 2) == 0) m(i, j - 1) = m(i, j) + it
        m(i, j) = m(i, j)*2 - m(i, j + 1)
        m(i, j + 1) = m(i, j)/2
      end do
    end do
  end do
  print '(15i4)', a, q, s, c
  print '(14i9)', m(1:n:4, :)
end program
