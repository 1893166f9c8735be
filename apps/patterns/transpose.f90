! Sweeps along the columns and then along the rows of one array, as in alternating directions and in Fourier
! transforms of two dimensions.
!
! Truth: a: DISTRIBUTE(*, BLOCK) over all threads in the first region of an iteration, DISTRIBUTE(BLOCK, *) in
! the second. A page belongs to all threads or to several in the second: no placement serves both, and that of
! the first is the best.
module sweeps
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer(word), allocatable :: a(:, :)
  integer(word) :: n

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    n = int(sqrt(real(bytes/word_bytes)), word)
    allocate (a(n, n))
    made = n*n*word_bytes
  end function

  subroutine fill()
    integer(word) :: i, j

    !$omp do schedule(static)
    do j = 1, n
      do i = 1, n
        a(i, j) = i + n*j
      end do
    end do
    !$omp end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer(word) :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, n
      do i = 2, n
        a(i, j) = iand(5*a(i, j) + a(i - 1, j) + number, mask)
      end do
    end do
    !$omp end parallel do
    ! A thread has the same rows in every column, so it need not wait for the others between two of them.
    !$omp parallel private(j)
    do j = 2, n
      !$omp do schedule(static)
      do i = 1, n
        a(i, j) = iand(5*a(i, j) + a(i, j - 1) + iterations, mask)
      end do
      !$omp end do nowait
    end do
    !$omp end parallel
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j

    total = 0
    do j = 1, n
      total = pattern_sum(total, a(:, j))
    end do
  end function
end module

program pattern_transpose
  use pattern, only: pattern_run
  use sweeps
  implicit none

  call pattern_run("pattern_transpose", allocate_arrays, fill, iterate, checksum)
end program
