program main
  use fields
  use stepping, only: step
  implicit none
  integer :: k
  call setup
  do k = 0, 99
    call step(k)
  end do
  print '(5f9.6)', u(1:n:8)
end program
