! Two grids in one allocation that change roles in every iteration.
!
! Truth: grid(:, :, 1) and grid(:, :, 2), each: DISTRIBUTE(*, BLOCK) over all threads.
module two_grids
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: n = 512 ! words of a column
  integer(word), allocatable :: grid(:, :, :)
  integer(word) :: columns

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    columns = bytes/(2*n*word_bytes)
    allocate (grid(n, columns, 2))
    made = size(grid, kind=c_long)*word_bytes
  end function

  subroutine fill()
    integer(word) :: i, j

    !$omp do schedule(static)
    do j = 1, columns
      do i = 1, n
        grid(i, j, 1) = i + j
        grid(i, j, 2) = i - j + columns
      end do
    end do
    !$omp end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer(word) :: i, j, old, new

    old = 1 + mod(number, 2_c_long)
    new = 3 - old
    !$omp parallel do schedule(static) private(i)
    do j = 2, columns - 1
      do i = 2, n - 1
        grid(i, j, new) = iand(grid(i, j, old) + grid(i - 1, j, old) + grid(i + 1, j, old) &
            + grid(i, j - 1, old) + grid(i, j + 1, old) + iterations, mask)
      end do
    end do
    !$omp end parallel do
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j

    total = 0
    do j = 1, columns
      total = pattern_sum(pattern_sum(total, grid(:, j, 1)), grid(:, j, 2))
    end do
  end function
end module

program pattern_two_grids
  use pattern, only: pattern_run
  use two_grids
  implicit none

  call pattern_run("pattern_two_grids", allocate_arrays, fill, iterate, checksum)
end program
