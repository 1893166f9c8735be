! A loop that reads beyond the borders of a thread's block: a twentieth of a block of one node of four, on
! either side.
!
! Truth: a, b: DISTRIBUTE(BLOCK) over all threads; of a, a halo of 5 % on either side is read by the neighbours.
module halo
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: nodes = 4, halos_a_block = 20
  integer(word), allocatable :: a(:), b(:)
  integer(word) :: n, width

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    n = bytes/(2*word_bytes)
    width = n/(nodes*halos_a_block)
    allocate (a(1 - width:n + width), b(n))
    made = (2*n + 2*width)*word_bytes
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
    a(:0) = 1
    a(n + 1:) = 2
    !$omp end single
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer(word) :: i

    !$omp parallel do schedule(static)
    do i = 1, n
      b(i) = iand(a(i - width) + a(i) + a(i + width) + number, mask)
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static)
    do i = 1, n
      a(i) = iand(5*b(i) + iterations, mask)
    end do
    !$omp end parallel do
  end subroutine

  integer(c_long) function checksum() result(total)
    total = pattern_sum(pattern_sum(0_word, a), b)
  end function
end module

program pattern_halo
  use pattern, only: pattern_run
  use halo
  implicit none

  call pattern_run("pattern_halo", allocate_arrays, fill, iterate, checksum)
end program
