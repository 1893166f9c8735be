! The Fortran side of pattern.h: what the programs of this folder share.
!
! Words are integers of 40 bits, so that what is computed from them never overflows.
module pattern
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  implicit none
  private

  integer, parameter, public :: word = c_int64_t
  integer, parameter, public :: word_bytes = 8
  integer(word), parameter, public :: mask = 2_word**40 - 1
  public :: pattern_begin, pattern_ready, pattern_end, pattern_run, pattern_sum

  integer(c_long), parameter :: default_bytes = 4*2_c_long**20
  integer(c_long), parameter :: least_bytes = 2_c_long**20, most_bytes = 2_c_long**46
  integer(c_long), parameter :: default_iterations = 20
  integer(c_int) :: initialisation

  abstract interface
    ! Makes the arrays, of some `bytes` together; returns how many bytes they have.
    integer(c_long) function made(bytes)
      import :: c_long
      integer(c_long), intent(in) :: bytes
    end function

    ! Touches the arrays first. Its loops bind to the region around it, where every thread is to touch what it
    ! will use; called outside of one, the master thread runs all of them.
    subroutine filled()
    end subroutine

    ! number: from 1. Called outside of parallel regions.
    subroutine iterated(number, iterations)
      import :: c_long
      integer(c_long), intent(in) :: number, iterations
    end subroutine

    integer(c_long) function summed()
      import :: c_long
    end function
  end interface

contains

  ! The options --size, --iterations and --initialise.
  subroutine pattern_begin(name, bytes, iterations)
    character(*), intent(in) :: name
    integer(c_long), intent(out) :: bytes, iterations

    call app_begin(name)
    bytes = app_bytes_option("--size", default_bytes, least_bytes, most_bytes, &
        "bytes of all arrays together, about; default 4M")
    iterations = app_integer_option("--iterations", default_iterations, 1_c_long, 1000000_c_long, "default 20")
    initialisation = app_initialise_option()
    call app_options_end()
  end subroutine

  ! The arrays are there: touches them first, and the iterations begin.
  subroutine pattern_ready(fill, bytes, iterations)
    procedure(filled) :: fill
    integer(c_long), intent(in) :: bytes, iterations
    character(len=32) :: size_text

    if (initialisation == app_parallel) then
      !$omp parallel
      call fill()
      !$omp end parallel
    else
      call fill()
    end if
    write (size_text, "(i0, a)") bytes, " bytes"
    call app_describe(size_text, bytes, initialisation, int(omp_get_max_threads(), c_int))
    call app_iterations_begin(iterations)
  end subroutine

  subroutine pattern_end(checksum)
    procedure(summed) :: checksum

    call app_iterations_end()
    call app_result_integer("checksum", checksum())
    call app_finish(app_not_applicable)
  end subroutine

  subroutine pattern_run(name, allocate_arrays, fill, iterate, checksum)
    character(*), intent(in) :: name
    procedure(made) :: allocate_arrays
    procedure(filled) :: fill
    procedure(iterated) :: iterate
    procedure(summed) :: checksum
    integer(c_long) :: bytes, iterations, number

    call pattern_begin(name, bytes, iterations)
    bytes = allocate_arrays(bytes)
    call pattern_ready(fill, bytes, iterations)
    do number = 1, iterations
      call app_iteration_begin()
      call iterate(number, iterations)
      call app_iteration_end()
    end do
    call pattern_end(checksum)
  end subroutine

  ! A sum that tells where in the array a value stands; `before` is that of what came before.
  integer(word) function pattern_sum(before, words) result(total)
    integer(word), intent(in) :: before, words(:)
    integer(word) :: i

    total = before
    do i = 1, size(words, kind=word)
      total = iand(31*total + words(i), mask)
    end do
  end function
end module
