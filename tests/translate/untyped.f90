program b1
  dimension x(20), k(20)
  REAL*8 a(20)
  real*8 b(20)
  Real (8) c(20)
  integer n
  !$homing distribute x(block), k(block), a(block), b(block), c(block)
  n = 20
  !$omp parallel do
  do i = 1, n
    x(i) = i/2.
    k(i) = i
    a(i) = x(i)
    b(i) = a(i)*2
    c(i) = b(i)
  end do
  print *, sum(x), sum(k), sum(a), sum(b), sum(c)
end program
