module found
  implicit none
  real(8) :: extra = 5, squares = 0
  integer :: above = 0
contains
  real(8) function half(x)
    real(8), intent(in) :: x
    half = x*0.5d0
  end function
end module
program c4
  use found, only: half, beside => extra, squares, above
  implicit none
  integer, parameter :: n = 24
  real(8) :: a(n), b(n), s, t(4), own, all, product, once(3), most, whole
  integer :: i, k, hist(0:3)
  !$homing distribute a(block), b(block)
  hist = 0; s = 0; t = 0; all = 1; product = 2; most = -9; whole = 3
  !$omp parallel private(k, own, once) reduction(+:hist, all) reduction(*:product)
  own = 0.d0; once = 1
  !$omp do
  do i = 1, n
    a(i) = mod(i*5, 7)
    b(i) = 0
  end do
  do k = 1, 3
    !$omp do reduction(+:s) schedule(guided)
    do i = 2, n - 1
      b(i) = a(i - 1) - a(i + 1)
      s = s + b(i)**2
    end do
    !$omp do
    do i = 2, n - 1
      a(i) = a(i) + b(i)*0.125d0
      hist(mod(i, 4)) = hist(mod(i, 4)) + 1
      own = own + b(i)
      once(2) = once(2)*(1 + b(i)/64)
    end do
    !$omp single
    t(k) = s
    !$omp end single
    !$omp master
    a(1) = a(1) + k
    !$omp end master
    !$omp barrier
  end do
  if (own /= 0) all = all - own*0.5d0
  product = product*once(2)
  !$omp atomic
  beside = beside + own*2
  !$omp critical
  if (own > most) most = own
  whole = whole - own
  !$omp end critical
  !$omp end parallel
  !$omp parallel do reduction(+:squares)
  do i = 1, n
    b(i) = half(a(i))
    squares = squares + b(i)**2
    if (b(i) > 1) then
      !$omp atomic
      above = above + 1
    end if
  end do
  print *, squares, above
  print *, s, t, hist, sum(a), all
  print '(3f12.8)', product, beside, whole
  if (most < -8) print *, 'none'
end program
