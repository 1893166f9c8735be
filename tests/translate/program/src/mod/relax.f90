subroutine relax(a, b, n)
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: a(0:n + 1)
  real(8), intent(inout) :: b(0:n + 1)
  integer :: i
  !$omp parallel do
  do i = 1, n
    b(i) = (a(i - 1) + a(i + 1))/2
  end do
end subroutine
