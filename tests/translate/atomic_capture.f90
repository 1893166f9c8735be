program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, h(n), v, old, k
  real(8) :: a(n)
!$homing distribute a(block), h(block)
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i
    h(i) = 0
  end do
!$omp parallel do private(v, old)
!$homing on home(a(i))
  do i = 1, n
!$omp atomic
    h(i) = h(i) + 1
!$omp atomic capture
    v = h(i)
    h(i) = h(i) + 2
!$omp end atomic
!$omp atomic read
    old = h(i)
!$omp atomic write
    h(i) = old + v
    a(i) = v + old
  end do
  print *, h(1), h(n), a(3)
!$omp parallel private(k, v)
!$omp do
!$homing on home(a(i))
  do i = 1, n
!$omp atomic update
    a(i) = a(i) + 1
  end do
!$omp end parallel
  print *, a(3) > 0
  print *, h(1:10)
end program
