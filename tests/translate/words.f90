! Arrays and variables called like statements, parts of statements, functions and other languages' words.
module words
  implicit none
  integer, parameter :: n = 40
  real(8), allocatable :: scale(:)
  !$homing distribute scale(block)
contains
  subroutine fill(size, read)
    integer, intent(in) :: size
    real(8), intent(inout) :: read(size)
    !$homing distribute read(block)
    integer :: is
    !$omp parallel do
    do is = 1, size
      read(is) = mod(is*7, 13)
    end do
  end subroutine
end module
program program_of_words
  use words
  implicit none
  real(8) :: data(n), error(n), block(n), format(n), where(n), do(n), end(n), write(n)
  real(8) :: none, select(3)
  integer :: in, is, if, lambda
  !$homing distribute data(block), error(block), block(block), format(block)
  !$homing distribute where(block), do(block), end(block), write(block)
  allocate (scale(n))
  select = [1, 2, 3]
  none = 0
  do is = 1, n
    data(is) = mod(is*7, 13)
  end do
  call fill(n, write)
  !$omp parallel do
  do is = 2, n - 1
    if (data(is - 1) > data(is + 1)) then
      error(is) = data(is)
    else if (data(is) == 3) then
      error(is) = 2 + data(is + 1)
    else
      error(is) = 1
    end if
  end do
  error(1) = 3; error(n) = 4
  !$omp parallel do
  do is = 1, n
    scale(is) = 2*is
  end do
  !$omp parallel do reduction(+:none)
  do is = 2, n - 1
    none = none + scale(is - 1)*scale(is + 1)
  end do
  !$omp parallel do
  do in = 2, n - 1
    select case (nint(error(in - 1)))
    case (1)
      block(in) = error(in + 1)
    case default
      block(in) = -write(in)
    end select
  end do
  block(1) = 1; block(n) = 2
  !$omp parallel do private(if)
  do lambda = 2, n - 1
    if = lambda + 1
    if (block(lambda - 1) < 0) format(lambda) = block(lambda + 1)
    if (.not. block(lambda - 1) < 0) format(lambda) = select(2)
    where(lambda) = 3; do(lambda) = where(lambda) + block(lambda)
    end(lambda) = do(lambda)*if
    write(lambda) = write(lambda) + end(lambda)
  end do
  format(1) = 0; format(n) = 0
  !$omp parallel do reduction(+:none)
  do is = 2, n - 1
    none = none + format(is)*is - write(is)
  end do
  print *, none, sum(error), sum(block), sum(format), maxval(write), sum(scale)
end program
