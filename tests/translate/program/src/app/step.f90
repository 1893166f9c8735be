module stepping
  use fields
  implicit none
contains
  subroutine step(k)
    integer, intent(in) :: k
    external relax
    if (mod(k, 2) == 0) then
      call relax(u, v, n)
    else
      call relax(v, u, n)
    end if
  end subroutine
end module
