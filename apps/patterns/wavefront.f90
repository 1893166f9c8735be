! A pipelined wavefront: every point needs its neighbour to the left and the one below, so a thread computes
! its part of a plane one step after the thread to its left. The steps of an iteration are barriers of one
! region.
!
! Truth: a, b: DISTRIBUTE(*, BLOCK, *) over all threads: in every plane a block each.
module wavefront
  use, intrinsic :: iso_c_binding, only: c_long
  use omp_lib, only: omp_get_num_threads, omp_get_thread_num
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: n = 128, planes = 16 ! words of a column, and planes
  integer(word), allocatable :: a(:, :, :), b(:, :, :)
  integer(word) :: columns

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    columns = bytes/(2*n*planes*word_bytes)
    allocate (a(n, columns, planes), b(n, columns, planes))
    made = 2*size(a, kind=c_long)*word_bytes
  end function

  ! The calling thread's columns; outside of a region that is all.
  subroutine mine(first, last)
    integer(word), intent(out) :: first, last
    integer(word) :: threads, thread

    threads = omp_get_num_threads()
    thread = omp_get_thread_num()
    first = columns*thread/threads + 1
    last = columns*(thread + 1)/threads
  end subroutine

  subroutine fill()
    integer(word) :: first, last, i, j, k

    call mine(first, last)
    do k = 1, planes
      do j = first, last
        do i = 1, n
          a(i, j, k) = i + j + k
          b(i, j, k) = i
        end do
      end do
    end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer(word) :: first, last, i, j, k, step, left, below

    !$omp parallel private(first, last, i, j, k, step, left, below)
    call mine(first, last)
    do step = 1, planes + omp_get_num_threads() - 1
      k = step - omp_get_thread_num()
      if (k >= 1 .and. k <= planes) then
        below = max(k - 1, 1_word)
        do j = first, last
          left = max(j - 1, 1_word)
          do i = 1, n
            b(i, j, k) = iand(b(i, j, k) + number, mask)
            a(i, j, k) = iand(5*a(i, j, k) + a(i, left, k) + a(i, j, below) + b(i, j, k) + iterations, mask)
          end do
        end do
      end if
      !$omp barrier
    end do
    !$omp end parallel
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j, k

    total = 0
    do k = 1, planes
      do j = 1, columns
        total = pattern_sum(pattern_sum(total, a(:, j, k)), b(:, j, k))
      end do
    end do
  end function
end module

program pattern_wavefront
  use pattern, only: pattern_run
  use wavefront
  implicit none

  call pattern_run("pattern_wavefront", allocate_arrays, fill, iterate, checksum)
end program
