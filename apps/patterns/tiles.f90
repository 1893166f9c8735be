! Threads in a rectangle, each with a tile of both dimensions.
!
! Truth: a, b: DISTRIBUTE(BLOCK, BLOCK) over all threads, as near to a square as their number allows, the first
! dimension's blocks counting fastest. A column is 32 KiB, so with four threads a tile has runs of 16 KiB. Arrays
! begin with a page, so that no page belongs to two threads: whichever came first would own it, and equal runs
! would differ.
module tiles
  use, intrinsic :: iso_c_binding, only: c_intptr_t, c_loc, c_long
  use omp_lib, only: omp_get_num_threads, omp_get_thread_num
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: n = 4096 ! words of a column
  integer(word), pointer, contiguous :: a(:, :), b(:, :)
  integer(word) :: columns

  type :: tile
    integer(word) :: first_row, last_row, first_column, last_column
  end type

contains

  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes

    columns = bytes/(2*n*word_bytes)
    a => array_of_pages()
    b => array_of_pages()
    made = 2*size(a, kind=c_long)*word_bytes
  end function

  ! It lives as long as the program.
  function array_of_pages() result(array)
    integer, parameter :: page_words = 4096/word_bytes
    integer(word), pointer, contiguous :: array(:, :), words(:)
    integer(c_intptr_t) :: words_before

    allocate (words(n*columns + page_words))
    words_before = mod(transfer(c_loc(words), 0_c_intptr_t)/word_bytes, int(page_words, c_intptr_t))
    array(1:n, 1:columns) => words(page_words - words_before + 1:)
  end function

  ! The calling thread's; outside of a region that is all.
  type(tile) function mine()
    integer(word) :: threads, thread, down, right

    threads = omp_get_num_threads()
    thread = omp_get_thread_num()
    down = int(sqrt(real(threads)))
    do while (mod(threads, down) /= 0)
      down = down - 1
    end do
    right = threads/down
    mine%first_row = n*mod(thread, down)/down + 1
    mine%last_row = n*(mod(thread, down) + 1)/down
    mine%first_column = columns*(thread/down)/right + 1
    mine%last_column = columns*(thread/down + 1)/right
  end function

  subroutine fill()
    type(tile) :: part
    integer(word) :: i, j

    part = mine()
    do j = part%first_column, part%last_column
      do i = part%first_row, part%last_row
        a(i, j) = i + j
        b(i, j) = 0
      end do
    end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    type(tile) :: part
    integer(word) :: i, j, left, above

    !$omp parallel private(part, i, j)
    part = mine()
    do j = part%first_column, part%last_column
      do i = part%first_row, part%last_row
        b(i, j) = iand(5*a(i, j) + number, mask)
      end do
    end do
    !$omp end parallel
    !$omp parallel private(part, i, j, left, above)
    part = mine()
    do j = part%first_column, part%last_column
      left = max(j - 1, 1_word)
      do i = part%first_row, part%last_row
        above = max(i - 1, 1_word)
        a(i, j) = iand(b(i, j) + b(above, j) + b(i, left) + iterations, mask)
      end do
    end do
    !$omp end parallel
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j

    total = 0
    do j = 1, columns
      total = pattern_sum(pattern_sum(total, a(:, j)), b(:, j))
    end do
  end function
end module

program pattern_tiles
  use pattern, only: pattern_run
  use tiles
  implicit none

  call pattern_run("pattern_tiles", allocate_arrays, fill, iterate, checksum)
end program
