program w
  implicit none
  integer, parameter :: n = 30
  real(8) :: a(n), b(n)
  integer :: i
  !$homing distribute a(block), b(block)
  do i = 1, n
    a(i) = i
    b(i) = 2
  end do
  !$omp parallel do
  do i = 1, n
    block
      real(8) :: t
      t = a(i) + b(i)
      a(i) = t
    end block
  end do
  print *, sum(a), sum(b)
end program
