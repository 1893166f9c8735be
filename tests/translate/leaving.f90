program p
  implicit none
  integer, parameter :: n = 40
  integer :: i, k
  real(8) :: a(n), x
!$homing distribute a(block)
  do k = 1, 4
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i + k
  end do
  if (a(1) > 3) exit
  end do
  print *, k, a(1)
  outer: do k = 1, 4
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i + k
  end do
  if (a(1) < 3) then
    a(5) = 3
    cycle outer
  end if
  do i = 1, n
   a(i) = a(i) + 1
   if (a(i) > 20) exit
   if (a(i) > 12 .and. &
       k > 3) cycle outer
  end do
  a(1) = 7
  end do outer
  print *, k, a(1), a(5)
  call s(1)
  call s(2)
  call s(3)
  open (10, status='scratch')
  write (10, *) 1, 2, 3
  write (10, *) 4, 5, 6
  rewind (10)
  do i = 1, n
    read (10, *, end=99) x
    a(i) = x
  end do
99 continue
  print *, a(1:4)
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = i + k
  end do
20 continue
  a(1) = a(1) + 1
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = a(i) + k
  end do
  if (a(1) < 30) goto 20
  a(2) = 5
  do i = 1, n
    if (a(i) > 50) goto 30
    if (a(i) > 40) goto 31
  end do
30 continue
  print *, 'thirty'
31 print *, i
  print *, a(1:4)
!$omp parallel do
!$homing on home(a(i))
  do i = 1, n
    a(i) = a(i) + k
  end do
  print *, a(1:4)
contains
  subroutine s(m)
    integer :: m
    a(3) = m
    if (a(3) > 2) return
!$omp parallel do
!$homing on home(a(i))
    do i = 1, n
      a(i) = a(i) + m
    end do
    if (a(3) > 3) then
      print *, 'ret', sum(a)
      return
    end if
    print *, a(3)
  end subroutine
end program
