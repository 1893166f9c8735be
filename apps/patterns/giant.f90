! One parallel region from the first iteration to the last: only barriers tell where an iteration ends.
!
! Truth: a, b: DISTRIBUTE(BLOCK) over all threads.
module giant
  use, intrinsic :: iso_c_binding, only: c_long
  use app
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate_all, checksum

  integer(word), allocatable :: a(:), b(:)
  integer(word) :: n

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    n = bytes/(2*word_bytes)
    allocate (a(0:n), b(n))
    made = 2*n*word_bytes
  end function

  subroutine fill()
    integer(word) :: i

    !$omp do schedule(static)
    do i = 1, n
      a(i) = i
      b(i) = 0
    end do
    !$omp end do
    !$omp single
    a(0) = 1
    !$omp end single
  end subroutine

  subroutine iterate_all(iterations)
    integer(c_long), intent(in) :: iterations
    integer(c_long) :: number
    integer(word) :: i

    !$omp parallel private(number)
    do number = 1, iterations
      !$omp master
      call app_iteration_begin()
      !$omp end master
      !$omp barrier
      !$omp do schedule(static)
      do i = 1, n
        b(i) = iand(5*a(i) + a(i - 1) + number, mask)
      end do
      !$omp end do
      !$omp do schedule(static)
      do i = 1, n
        a(i) = iand(a(i) + b(i), mask)
      end do
      !$omp end do
      !$omp master
      call app_iteration_end()
      !$omp end master
    end do
    !$omp end parallel
  end subroutine

  integer(c_long) function checksum() result(total)
    total = pattern_sum(pattern_sum(0_word, a), b)
  end function
end module

program pattern_giant
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern, only: pattern_begin, pattern_end, pattern_ready
  use giant
  implicit none
  integer(c_long) :: bytes, iterations

  call pattern_begin("pattern_giant", bytes, iterations)
  bytes = allocate_arrays(bytes)
  call pattern_ready(fill, bytes, iterations)
  call iterate_all(iterations)
  call pattern_end(checksum)
end program
