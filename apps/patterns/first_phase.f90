! A first phase unlike the rest: for the first quarter of the iterations columns are dealt out in turn, as
! where a matrix is assembled; then every thread has a block of them.
!
! Truth: a, b: DISTRIBUTE(*, CYCLIC(4)) over all threads in the first quarter of the iterations, then
! DISTRIBUTE(*, BLOCK). Parallel initialisation is that of the first phase.
module phases
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: n = 1024, chunk = 4 ! words of a column, columns
  integer(word), allocatable :: a(:, :), b(:, :)
  integer(word) :: columns

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    columns = bytes/(2*n*word_bytes)
    allocate (a(n, columns), b(n, columns))
    made = 2*size(a, kind=c_long)*word_bytes
  end function

  subroutine fill()
    integer(word) :: i, j

    !$omp do schedule(static, chunk)
    do j = 1, columns
      do i = 1, n
        a(i, j) = i + j
        b(i, j) = 0
      end do
    end do
    !$omp end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer(word) :: j

    if (4*number <= iterations) then
      !$omp parallel do schedule(static, chunk)
      do j = 1, columns
        call assemble(a(:, j), b(:, j))
      end do
      !$omp end parallel do
    else
      !$omp parallel do schedule(static)
      do j = 1, columns
        call predict(a(:, j), b(:, j))
      end do
      !$omp end parallel do
      !$omp parallel do schedule(static)
      do j = 1, columns
        call correct(a(:, j), b(:, max(j - 1, 1_word)))
      end do
      !$omp end parallel do
    end if
  end subroutine

  subroutine assemble(x, y)
    integer(word), intent(inout) :: x(n), y(n)

    y = iand(y + 3*x, mask)
    x = iand(5*x + y, mask)
  end subroutine

  subroutine predict(x, y)
    integer(word), intent(in) :: x(n)
    integer(word), intent(inout) :: y(n)

    y = iand(5*x + y + 1, mask)
  end subroutine

  subroutine correct(x, y)
    integer(word), intent(inout) :: x(n)
    integer(word), intent(in) :: y(n)

    x = iand(x + y, mask)
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j

    total = 0
    do j = 1, columns
      total = pattern_sum(pattern_sum(total, a(:, j)), b(:, j))
    end do
  end function
end module

program pattern_first_phase
  use pattern, only: pattern_run
  use phases
  implicit none

  call pattern_run("pattern_first_phase", allocate_arrays, fill, iterate, checksum)
end program
