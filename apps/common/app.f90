! The Fortran side of app.h, upmlib.h and mark.h: see there for what each procedure does.
module app
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_long, c_loc, c_null_char, &
      c_associated, c_f_pointer, c_null_ptr, c_ptr, c_size_t
  implicit none
  private

  integer(c_int), parameter, public :: app_serial = 0, app_parallel = 1, app_published = 2, app_first_use = 3
  integer(c_int), parameter, public :: app_successful = 0, app_failed = 1, app_not_applicable = 2

  public :: app_begin, app_integer_option, app_bytes_option, app_choice_option, app_text_option, app_initialise_option
  public :: app_options_end, app_missing
  public :: app_describe, app_iterations_begin, app_iteration_begin, app_iteration_end, app_iterations_end
  public :: app_upmlib_option, app_phase_begins, app_phase_ends, app_upmlib_iteration_ends
  public :: app_result, app_result_integer, app_compare, app_finish, app_error, homing_mark

  ! The arguments as C sees them; they must live until app_options_end.
  character(kind=c_char), allocatable, target :: argument_text(:)
  type(c_ptr), allocatable, target :: arguments(:)

  ! C keeps these texts for --help, so they are copied once and never freed.
  type :: kept_text
    character(kind=c_char), pointer :: text(:)
  end type

  interface
    subroutine c_app_begin(name, argc, argv) bind(c, name="app_begin")
      import
      type(c_ptr), value :: name, argv
      integer(c_int), value :: argc
    end subroutine

    function c_integer_option(name, otherwise, least, most, help) result(number) &
        bind(c, name="app_integer_option")
      import
      type(c_ptr), value :: name, help
      integer(c_long), value :: otherwise, least, most
      integer(c_long) :: number
    end function

    function c_bytes_option(name, otherwise, least, most, help) result(number) bind(c, name="app_bytes_option")
      import
      type(c_ptr), value :: name, help
      integer(c_long), value :: otherwise, least, most
      integer(c_long) :: number
    end function

    function c_choice_option(name, otherwise, choices, help) result(number) &
        bind(c, name="app_choice_option")
      import
      type(c_ptr), value :: name, choices, help
      integer(c_int), value :: otherwise
      integer(c_int) :: number
    end function

    function c_text_option(name, choices, help) result(text) bind(c, name="app_text_option")
      import
      type(c_ptr), value :: name, choices, help
      type(c_ptr) :: text
    end function

    function c_length(text) result(length) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function

    function app_initialise_option() result(number) bind(c, name="app_initialise_option")
      import
      integer(c_int) :: number
    end function

    subroutine app_options_end() bind(c, name="app_options_end")
    end subroutine

    subroutine c_describe(size, bytes, initialisation, threads) bind(c, name="app_describe")
      import
      character(kind=c_char), intent(in) :: size(*)
      integer(c_long), value :: bytes
      integer(c_int), value :: initialisation, threads
    end subroutine

    subroutine app_iterations_begin(iterations) bind(c, name="app_iterations_begin")
      import
      integer(c_long), value :: iterations
    end subroutine

    subroutine app_iteration_begin() bind(c, name="app_iteration_begin")
    end subroutine

    subroutine c_iteration_end(value_name, number) bind(c, name="app_iteration_end")
      import
      type(c_ptr), value :: value_name
      real(c_double), value :: number
    end subroutine

    subroutine app_upmlib_option() bind(c, name="app_upmlib_option")
    end subroutine

    subroutine app_phase_begins(iteration) bind(c, name="app_phase_begins")
      import
      integer(c_long), value :: iteration
    end subroutine

    subroutine app_phase_ends(iteration) bind(c, name="app_phase_ends")
      import
      integer(c_long), value :: iteration
    end subroutine

    subroutine app_upmlib_iteration_ends(iteration) bind(c, name="app_upmlib_iteration_ends")
      import
      integer(c_long), value :: iteration
    end subroutine

    subroutine app_iterations_end() bind(c, name="app_iterations_end")
    end subroutine

    subroutine c_result(name, number) bind(c, name="app_result")
      import
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: number
    end subroutine

    subroutine c_result_integer(name, number) bind(c, name="app_result_integer")
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_long), value :: number
    end subroutine

    function app_compare(number, expected, tolerance) result(verdict) bind(c, name="app_compare")
      import
      real(c_double), value :: number, expected, tolerance
      integer(c_int) :: verdict
    end function

    subroutine app_finish(verdict) bind(c, name="app_finish")
      import
      integer(c_int), value :: verdict
    end subroutine

    subroutine c_error(message) bind(c, name="app_error")
      import
      character(kind=c_char), intent(in) :: message(*)
    end subroutine

    subroutine c_missing(option, wanted) bind(c, name="app_missing")
      import
      character(kind=c_char), intent(in) :: option(*), wanted(*)
    end subroutine

    subroutine homing_mark(phase) bind(c, name="homing_mark")
      import
      integer(c_int), value :: phase
    end subroutine
  end interface

contains

  subroutine app_begin(name)
    character(*), intent(in) :: name
    integer :: i, length, used

    used = 0
    do i = 0, command_argument_count()
      call get_command_argument(i, length=length)
      used = used + length + 1
    end do
    allocate (argument_text(used), arguments(command_argument_count() + 2))
    used = 0
    do i = 0, command_argument_count()
      call get_command_argument(i, length=length)
      call store_argument(i, length, argument_text(used + 1:used + length + 1))
      arguments(i + 1) = c_loc(argument_text(used + 1))
      used = used + length + 1
    end do
    arguments(size(arguments)) = c_null_ptr
    call c_app_begin(keep(name), int(command_argument_count() + 1, c_int), c_loc(arguments))
  end subroutine

  subroutine store_argument(i, length, text)
    integer, intent(in) :: i, length
    character(kind=c_char), intent(out) :: text(:)
    character(len=length) :: argument
    integer :: k

    call get_command_argument(i, argument)
    do k = 1, length
      text(k) = argument(k:k)
    end do
    text(length + 1) = c_null_char
  end subroutine

  function keep(text) result(address)
    character(*), intent(in) :: text
    type(c_ptr) :: address
    type(kept_text) :: copy
    integer :: k

    allocate (copy%text(len(text) + 1))
    do k = 1, len(text)
      copy%text(k) = text(k:k)
    end do
    copy%text(len(text) + 1) = c_null_char
    address = c_loc(copy%text(1))
  end function

  integer(c_long) function app_integer_option(name, otherwise, least, most, help) result(number)
    character(*), intent(in) :: name, help
    integer(c_long), intent(in) :: otherwise, least, most
    number = c_integer_option(keep(name), otherwise, least, most, keep(help))
  end function

  integer(c_long) function app_bytes_option(name, otherwise, least, most, help) result(number)
    character(*), intent(in) :: name, help
    integer(c_long), intent(in) :: otherwise, least, most
    number = c_bytes_option(keep(name), otherwise, least, most, keep(help))
  end function

  ! The index counts from 0, as in C.
  integer(c_int) function app_choice_option(name, otherwise, choices, help) result(number)
    character(*), intent(in) :: name, choices, help
    integer(c_int), intent(in) :: otherwise
    number = c_choice_option(keep(name), otherwise, keep(choices), keep(help))
  end function

  ! Empty where the option is not given.
  function app_text_option(name, choices, help) result(text)
    character(*), intent(in) :: name, choices, help
    character(:), allocatable :: text
    character(kind=c_char), pointer :: given(:)
    type(c_ptr) :: address
    integer :: k

    text = ""
    address = c_text_option(keep(name), keep(choices), keep(help))
    if (.not. c_associated(address)) return
    call c_f_pointer(address, given, [c_length(address)])
    text = repeat(" ", size(given))
    do k = 1, size(given)
      text(k:k) = given(k)
    end do
  end function

  subroutine app_missing(option, wanted)
    character(*), intent(in) :: option, wanted
    call c_missing(option//c_null_char, wanted//c_null_char)
  end subroutine

  subroutine app_describe(problem_size, bytes, initialisation, threads)
    character(*), intent(in) :: problem_size
    integer(c_long), intent(in) :: bytes
    integer(c_int), intent(in) :: initialisation, threads
    call c_describe(trim(problem_size)//c_null_char, bytes, initialisation, threads)
  end subroutine

  subroutine app_iteration_end(value_name, number)
    character(*), intent(in), optional :: value_name
    real(c_double), intent(in), optional :: number
    character(kind=c_char), target :: text(64)
    integer :: k

    if (.not. present(value_name) .or. .not. present(number)) then
      call c_iteration_end(c_null_ptr, 0.0_c_double)
      return
    end if
    do k = 1, len(value_name)
      text(k) = value_name(k:k)
    end do
    text(len(value_name) + 1) = c_null_char
    call c_iteration_end(c_loc(text), number)
  end subroutine

  subroutine app_result(name, number)
    character(*), intent(in) :: name
    real(c_double), intent(in) :: number
    call c_result(name//c_null_char, number)
  end subroutine

  subroutine app_result_integer(name, number)
    character(*), intent(in) :: name
    integer(c_long), intent(in) :: number
    call c_result_integer(name//c_null_char, number)
  end subroutine

  subroutine app_error(message)
    character(*), intent(in) :: message
    call c_error(trim(message)//c_null_char)
  end subroutine
end module
