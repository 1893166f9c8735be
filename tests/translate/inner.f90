! Distributed arrays in an internal procedure only, and regions with DEFAULT(PRIVATE).
program inner
  implicit none
  integer :: size
  character(8) :: word
  call get_command_argument(1, word)
  read (word, *) size
  call run(size)
contains
  subroutine run(n)
    integer, intent(in) :: n
    real(8) :: a(n, n), b(n, n)
    integer :: i, j
!$homing distribute a(*, block), b(*, block)
!$omp parallel do default(private) shared(a, b, n)
    do j = 1, n
      do i = 1, n
        a(i, j) = i + 10*j
        b(i, j) = a(i, j)/3
      end do
    end do
!$omp parallel default(firstprivate) shared(a, b)
!$omp do
    do j = 1, n
      do i = 1, n
        b(i, j) = b(i, j)*a(i, j)
      end do
    end do
!$omp end parallel
    print '(*(z17))', b
  end subroutine
end program
