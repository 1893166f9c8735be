! Arrays with values from the beginning: of the main program, of modules, of procedures that keep them.
module field_of_program
  implicit none
  integer, private :: k
  integer, parameter :: n = 10
  real(8) :: u(n) = [(k*1.5d0, k = 1, n)], w(n)
  real(8), private :: hidden(n)
  real(8), allocatable :: sized(:)
  integer :: sizes(8) = [3, 1, 2, 0, 1, 1, 1, 1]
  !$homing distribute u(block), w(block), hidden(block), sized(gen_block(sizes))
  data hidden /n*0.25d0/, w(1:3), w(4:n) /3*1, 7*2/
contains
  subroutine advance(total)
    real(8), intent(inout) :: total
    integer :: i
    !$omp parallel do
    !$homing on home(hidden(i))
    do i = 1, n
      hidden(i) = hidden(i) + w(i)
    end do
    total = total + sum(hidden)
  end subroutine
end module
program initial_values
  use field_of_program
  implicit none
  integer :: i, calls(4) = [4, 3, 2, 1]
  real(8) a(n), b(n), total
  integer, dimension(n) :: marks = 7
  integer old(n) /2*1, 8*2/, data(2)
  character(4) :: title
  !$homing distribute a(block), b(cyclic), marks(block), old(block), data(block)
  data a(1), (a(i), i = 2, n) /5, 9*6.5d0/, b /n*3/, total /0.5d0/
  data title /'a, b'/, data /2*5/
  do i = 1, 3
    call advance(total)
    call count_up(total)
    call keep_all(total)
  end do
  !$omp parallel do
  !$homing on home(a(i))
  do i = 1, n
    a(i) = a(i) + u(i) + marks(i) + old(i)
  end do
  b = b + 1
  allocate (sized(n))
  sized = a - b
  print '(10f7.2)', a, b, u, w, sized, total
  print *, calls, title, data
contains
  subroutine count_up(total)
    real(8), intent(inout) :: total
    integer, save :: h(n) = 1, times = 0
    real(8), allocatable, save :: kept(:)
    !$homing distribute h(block), kept(block)
    integer :: i
    if (times == 0) then
      allocate (kept(n))
      kept = 0.5d0
    end if
    times = times + 1
    !$omp parallel do
    !$homing on home(h(i))
    do i = 1, n
      h(i) = h(i) + i
    end do
    kept = kept + h
    total = total + sum(kept) + times
  end subroutine
  subroutine keep_all(total)
    save
    real(8), intent(inout) :: total
    real(8) :: h(n)
    logical :: first = .true.
    !$homing distribute h(block)
    integer :: i
    if (first) h = 0
    first = .false.
    !$omp parallel do
    do i = 1, n
      h(i) = h(i) + i
    end do
    total = total + sum(h)
  end subroutine
end program
