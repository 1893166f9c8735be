! Values that each way through a construct writes before they are used, in loops whose inner one is divided.
program written_either_way
  implicit none
  integer, parameter :: n = 23
  integer :: i, j
  real(8) :: u(n, n), v(n, n), t, s
!$homing distribute u(block, *), v(block, *)
!$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      u(i, j) = i*i + 31*j - i*j
      v(i, j) = 0
    end do
  end do
!$omp parallel do private(i, t, s)
  do j = 2, n
    do i = 2, n
      if (u(i, j) > 300) then
        t = u(i - 1, j)
      else if (u(i, j) > 200) then
        t = u(i, j - 1)
      else
        t = 1
      end if
      select case (mod(i, 3))
      case (0)
        s = t
      CASE  DEFAULT
        s = -t
      case (1)
        s = 2*t
      end select
      v(i, j) = s + t
    end do
  end do
  print '(6f13.3)', v
end program
