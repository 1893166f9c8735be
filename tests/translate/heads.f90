module m
contains
  integer function norm1(u)
    integer, intent(in) :: u(:)
    integer :: i
    norm1 = 0
    !$omp parallel do reduction(+:norm1)
    do i = 1, size(u)
      norm1 = norm1 + u(i)
    end do
  end function
end module
program p
  use m
  integer :: a(5), i, k
  !$homing distribute a(block)
  a = 1
  if (norm1(a) == 4) then
    print *, 'four', a(2)
  else if (norm1(a) == 5) then
    a(2) = 7
    print *, 'five', a(2)
  else
    print *, 'none'
  end if
  do i = 1, norm1(a) - 9
    a(1) = a(1) + i
    print *, i, a(1)
  end do
  do while (norm1(a) > 6)
    do k = 1, 5
      a(k) = a(k) - 1
    end do
  end do
  print *, a
  select case (norm1(a))
  case (:3)
    print *, 'small'
  case default
    print *, 'large', a(3)
  end select
  associate (q => norm1(a))
    print *, q, a(1)
  end associate
end program
