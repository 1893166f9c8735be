! Extrema that are kept with where they are: argmax and argmin.
module extrema_module
  implicit none
  integer, parameter :: n = 41
  real(8) :: a(n, n)
  !$homing distribute a(*, block)
contains
  subroutine pivot(k, at, big)
    integer, intent(in) :: k
    integer, intent(out) :: at
    real(8), intent(out) :: big
    integer :: i
    big = 0; at = k
    !$omp parallel do
    do i = k, n
      if (abs(a(k, i)) > big) then
        !$omp critical (pv)
        if (abs(a(k, i)) > big .or. (abs(a(k, i)) .eq. big .and. i < at)) then
          big = abs(a(k, i))
          at = i
        endif
        !$omp end critical (pv)
      end if
    end do
  end subroutine
  pure real(8) function weight(x)
    real(8), intent(in) :: x
    weight = x*x - 5*x
  end function
end module
program extrema
  use extrema_module
  implicit none
  type place
    real(8) :: value
    integer :: i, j
  end type
  type(place) :: lo
  real(8) :: big, x, least
  integer :: i, j, k, at, li, lj
  character(4) :: word
  logical :: found
  !$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      a(i, j) = mod(i*29 + j*j*3, 97)*0.25d0 - 9
    end do
  end do
  do k = 1, n, 9
    call pivot(k, at, big)
    print *, k, at, big
  end do
  least = huge(least); lo%i = -1; lo%j = -1; word = 'none'; found = .false.
  !$omp parallel do private(i, x)
  do j = 1, n
    do i = 1, n
      x = weight(a(i, j)) + 0.001d0*i + 0.00003d0*j
      !$omp critical
      if (least > x) then
        least = x
        lo%i = i
        lo%j = j
        word = 'some'
        found = .true.
      end if
      !$omp end critical
    end do
  end do
  print *, least, lo%i, lo%j, word, found
  at = 0; big = -1
  !$omp parallel private(x, li)
  x = -1
  li = 0
  !$omp do
  do j = 1, n
    if (a(3, j) > x) then
      x = a(3, j); li = j
    end if
  end do
  !$omp critical
  if ((x == big .and. li < at) .or. x > big) then
    at = li
    big = x
  end if
  !$omp end critical
  !$omp end parallel
  print *, big, at
end program
