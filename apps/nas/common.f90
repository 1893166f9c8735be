! What the NAS programs share: the options and the random numbers of the NAS Parallel Benchmarks.
!
! Source: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, NASA Ames, 1994. The section on
! the pseudorandom number generator describes the generator below.
module nas_common
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use app
  implicit none
  private

  public :: nas_options, random_next, random_skip

  ! The generator of the specification: x(k+1) = 5**13 * x(k) mod 2**46, its values are x * 2**-46.
  integer(int64), parameter, public :: random_seed_value = 314159265_int64
  integer(int64), parameter, public :: random_multiplier = 1220703125_int64

  integer(int64), parameter :: half_bits = 2_int64**23, all_bits = 2_int64**46

  type, public :: nas_run
    integer :: class = 1                      ! index into nas_classes
    logical :: parallel_initialisation = .false.
    integer(c_int) :: initialisation = app_serial
    integer(c_long) :: iterations = 0
    logical :: published_iterations = .true.  ! only then is there a published value to compare with
  end type

  character(*), parameter, public :: nas_classes = "SWABC"

contains

  ! Reads the command line of the benchmark `name`, whose classes have these published numbers of iterations.
  ! `third` and its number are a way of its own in which its arrays may be touched first; `work`, where it is there,
  ! becomes how often parts of an iteration are repeated.
  type(nas_run) function nas_options(name, published, third, third_number, work) result(run)
    character(*), intent(in) :: name
    integer, intent(in) :: published(:)
    character(*), intent(in), optional :: third
    integer(c_int), intent(in), optional :: third_number
    integer(c_long), intent(out), optional :: work
    integer(c_long) :: iterations

    call app_begin(name)
    run%class = app_choice_option("--class", 0_c_int, classes_of(size(published)), "the problem size") + 1
    iterations = app_integer_option("--iterations", 0_c_long, 1_c_long, 1000000_c_long, &
        "instead of the published number; there is no verification then")
    if (present(third) .and. present(third_number)) then
      run%initialisation = app_choice_option("--initialise", app_serial, "serial|parallel|"//third, &
          "who touches the arrays first: the master thread, each thread its part, or see README.md")
      if (run%initialisation > app_parallel) run%initialisation = third_number
    else
      run%initialisation = app_initialise_option()
    end if
    if (present(work)) then
      work = app_integer_option("--work", 1_c_long, 1_c_long, 1000_c_long, &
          "repeat the solvers so many times in each step, with the same results")
      call app_upmlib_option()
    end if
    call app_options_end()

    run%parallel_initialisation = run%initialisation == app_parallel
    run%published_iterations = iterations == 0 .or. iterations == published(run%class)
    run%iterations = merge(int(published(run%class), c_long), iterations, iterations == 0)
  end function

  ! As --class offers them: the first of S, W, A, B, C.
  function classes_of(count) result(choices)
    integer, intent(in) :: count
    character(:), allocatable :: choices
    integer :: i

    choices = nas_classes(1:1)
    do i = 2, count
      choices = choices//"|"//nas_classes(i:i)
    end do
  end function

  ! a * b mod 2**46 of two numbers below 2**46, in halves of 23 bits so that nothing overflows.
  pure integer(int64) function multiply(a, b) result(product)
    integer(int64), intent(in) :: a, b
    integer(int64) :: a_high, a_low, b_high, b_low

    a_high = a/half_bits
    a_low = mod(a, half_bits)
    b_high = b/half_bits
    b_low = mod(b, half_bits)
    product = mod(mod(a_high*b_low + a_low*b_high, half_bits)*half_bits + a_low*b_low, all_bits)
  end function

  ! Advances the state and returns the next random number, between 0 and 1.
  real(real64) function random_next(state) result(number)
    integer(int64), intent(inout) :: state

    state = multiply(random_multiplier, state)
    number = scale(real(state, real64), -46)
  end function

  ! The state after `numbers` more numbers, by repeated squaring of the multiplier.
  pure integer(int64) function random_skip(state, numbers) result(skipped)
    integer(int64), intent(in) :: state, numbers
    integer(int64) :: square, remaining

    skipped = state
    square = random_multiplier
    remaining = numbers
    do while (remaining > 0)
      if (mod(remaining, 2_int64) == 1) skipped = multiply(skipped, square)
      square = multiply(square, square)
      remaining = remaining/2
    end do
  end function
end module
