!> The Fortran interface of homing_parts.h, for programs that `homing translate` wrote. Dimensions count from 0, as there.
module homing_parts
  use, intrinsic :: iso_c_binding, only: homing_handle => c_ptr, c_ptr, homing_long => c_long, c_int, c_size_t, &
      & c_char, c_loc, c_float, c_double, c_null_char, c_f_pointer, homing_nothing => c_null_ptr
  implicit none
  private
  public :: homing_handle, homing_long, homing_nothing
  public :: homing_start, homing_rank, homing_threads, homing_part_count, homing_first_part, homing_last_part, homing_part
  public :: homing_before, homing_leaving, homing_layout_fitted, homing_runs, homing_share_last
  public :: homing_layout_create, homing_layout_free, homing_layout_swap, homing_lower, homing_upper
  public :: homing_template_lower, homing_template_upper, homing_together, homing_begins_at, homing_ends_at, homing_low, homing_high
  public :: homing_own_low, homing_run_low, homing_run_high, homing_run_next
  public :: homing_own_high, homing_next, homing_stride, homing_block_end, homing_local, homing_owns, homing_clear, &
      & homing_local_stride
  public :: homing_fetch, homing_push, homing_broadcast, homing_collect, homing_scatter, homing_share, homing_combine, &
      & homing_combine_one, homing_elect, homing_share_elected
  public :: homing_team, homing_redistribute, homing_share_value, homing_place, homing_file

  integer(c_int), parameter, public :: homing_sum = 0, homing_product = 1, homing_minimum = 2, homing_maximum = 3, &
      & homing_and = 4, homing_or = 5, homing_other = 6, homing_bits_and = 7, homing_bits_or = 8, homing_bits_other = 9
  integer(c_int), parameter, public :: homing_integers = 0, homing_reals = 2, homing_complexes = 3, homing_logicals = 4

  !> Frees the layout of a procedure's own array however the procedure is left.
  type :: homing_leaving
    type(homing_handle), pointer :: layout => null()
  contains
    final :: leave
  end type

  interface
    subroutine homing_start() bind(c)
    end subroutine
    integer(c_int) function homing_rank() bind(c)
      import :: c_int
    end function
    integer(c_int) function homing_threads() bind(c)
      import :: c_int
    end function
    integer(c_int) function homing_part_count() bind(c)
      import :: c_int
    end function
    integer(c_int) function homing_team() bind(c)
      import :: c_int
    end function
    ! Pure as far as Fortran can tell: they stand in specification expressions.
    pure integer(c_int) function homing_first_part() bind(c)
      import :: c_int
    end function
    pure integer(c_int) function homing_last_part() bind(c)
      import :: c_int
    end function
    pure integer(c_int) function homing_part() bind(c)
      import :: c_int
    end function
    type(homing_handle) function c_layout_create(name, language, rank, element, dimensions, sizes) &
        & bind(c, name='homing_layout_create')
      import :: homing_handle, c_int, c_size_t, homing_long, c_char
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: language, rank
      integer(c_size_t), value :: element
      integer(homing_long), intent(in) :: dimensions(*), sizes(*)
    end function
    integer(c_int) function c_layout_fit(layout, name, language, rank, element, dimensions, sizes) &
        & bind(c, name='homing_layout_fit')
      import :: homing_handle, c_int, c_size_t, homing_long, c_char
      type(homing_handle), intent(inout) :: layout
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: language, rank
      integer(c_size_t), value :: element
      integer(homing_long), intent(in) :: dimensions(*), sizes(*)
    end function
    type(homing_handle) function c_layout_free(layout) bind(c, name='homing_layout_free')
      import :: homing_handle
      type(homing_handle), value :: layout
    end function
    pure integer(homing_long) function c_low(layout, part, dimension) bind(c, name='homing_low')
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
    end function
    pure integer(homing_long) function c_high(layout, part, dimension) bind(c, name='homing_high')
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
    end function
    pure integer(homing_long) function homing_lower(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_upper(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_template_lower(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_template_upper(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_own_low(layout, part, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
    end function
    pure integer(homing_long) function homing_own_high(layout, part, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
    end function
    pure integer(homing_long) function homing_next(layout, part, dimension, index) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index
    end function
    pure integer(homing_long) function homing_run_low(layout, part, dimension, most) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: most
    end function
    pure integer(homing_long) function homing_run_high(layout, part, dimension, most) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: most
    end function
    pure integer(homing_long) function homing_run_next(layout, part, dimension, index, most) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index, most
    end function
    pure integer(c_int) function c_runs(layout, part, dimension, index, most) bind(c, name='homing_runs')
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index, most
    end function
    pure integer(homing_long) function homing_stride(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_local_stride(layout, dimension) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: dimension
    end function
    pure integer(homing_long) function homing_block_end(layout, part, dimension, index) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index
    end function
    pure integer(homing_long) function homing_local(layout, part, dimension, index) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index
    end function
    pure integer(c_int) function c_owns(layout, part, dimension, index) bind(c, name='homing_owns')
      import :: homing_handle, c_int, homing_long
      type(homing_handle), intent(in), value :: layout
      integer(c_int), intent(in), value :: part, dimension
      integer(homing_long), intent(in), value :: index
    end function
    subroutine homing_together(layout, dimension, other, other_dimension) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: layout, other
      integer(c_int), value :: dimension, other_dimension
    end subroutine
    subroutine homing_begins_at(layout, dimension, lower, where) bind(c)
      import :: homing_handle, c_int, homing_long, c_char
      type(homing_handle), value :: layout
      integer(c_int), value :: dimension
      integer(homing_long), value :: lower
      character(kind=c_char), intent(in) :: where(*)
    end subroutine
    subroutine homing_ends_at(layout, dimension, upper, where) bind(c)
      import :: homing_handle, c_int, homing_long, c_char
      type(homing_handle), value :: layout
      integer(c_int), value :: dimension
      integer(homing_long), value :: upper
      character(kind=c_char), intent(in) :: where(*)
    end subroutine
    subroutine homing_clear(layout, part, memory, zero) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: layout
      integer(c_int), value :: part, zero
      type(*), intent(inout) :: memory(*)
    end subroutine
    subroutine homing_before(layout, part, memory) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: layout
      integer(c_int), value :: part
      type(*), intent(in) :: memory(*)
    end subroutine
    subroutine homing_fetch(layout, home, part, memory, count, boxes) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), value :: layout, home
      integer(c_int), value :: part, count
      type(*), intent(inout) :: memory(*)
      integer(homing_long), intent(in) :: boxes(*)
    end subroutine
    subroutine homing_push(layout, home, part, memory, count, boxes) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), value :: layout, home
      integer(c_int), value :: part, count
      type(*), intent(inout) :: memory(*)
      integer(homing_long), intent(in) :: boxes(*)
    end subroutine
    subroutine homing_broadcast(layout, part, memory, low, high, target) bind(c)
      import :: homing_handle, c_int, homing_long
      type(homing_handle), value :: layout
      integer(c_int), value :: part
      type(*), intent(in) :: memory(*)
      integer(homing_long), intent(in) :: low(*), high(*)
      type(*), intent(inout) :: target(*)
    end subroutine
    subroutine homing_redistribute(from, to, part, memory, target) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: from, to
      integer(c_int), value :: part
      type(*), intent(in) :: memory(*)
      type(*), intent(inout) :: target(*)
    end subroutine
    subroutine homing_collect(layout, part, memory, whole) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: layout
      integer(c_int), value :: part
      type(*), intent(in) :: memory(*)
      type(*), intent(inout) :: whole(*)
    end subroutine
    subroutine homing_scatter(layout, part, memory, whole) bind(c)
      import :: homing_handle, c_int
      type(homing_handle), value :: layout
      integer(c_int), value :: part
      type(*), intent(inout) :: memory(*)
      type(*), intent(in) :: whole(*)
    end subroutine
    subroutine homing_share(layout, whole) bind(c)
      import :: homing_handle
      type(homing_handle), value :: layout
      type(*), intent(inout) :: whole(*)
    end subroutine
    subroutine homing_place(layout, memory) bind(c)
      import :: homing_handle
      type(homing_handle), value :: layout
      type(*), intent(in) :: memory(*)
    end subroutine
    subroutine homing_combine(values, count, bits, kind, operation) bind(c)
      import :: c_int, homing_long
      type(*), intent(inout) :: values(*)
      integer(homing_long), value :: count
      integer(c_int), value :: bits, kind, operation
    end subroutine
    subroutine homing_combine_one(value, count, bits, kind, operation) bind(c)
      import :: c_int, homing_long
      type(*), intent(inout) :: value
      integer(homing_long), value :: count
      integer(c_int), value :: bits, kind, operation
    end subroutine
    subroutine homing_elect(value, bits, kind, operation, begins) bind(c)
      import :: c_int
      type(*), intent(in) :: value
      integer(c_int), value :: bits, kind, operation, begins
    end subroutine
    subroutine homing_share_elected(value, bytes) bind(c)
      import :: homing_long
      type(*), intent(inout) :: value
      integer(homing_long), value :: bytes
    end subroutine
    type(c_ptr) function c_own_file(name, use) bind(c, name='homing_own_file')
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: use
    end function
    pure integer(c_size_t) function c_length(text) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), intent(in), value :: text
    end function
    subroutine c_share_last(value, bytes, mine) bind(c, name='homing_share_last')
      import :: c_size_t, c_int
      type(*), intent(inout) :: value
      integer(c_size_t), value :: bytes
      integer(c_int), value :: mine
    end subroutine
    subroutine c_share_bytes(value, bytes) bind(c, name='homing_share_bytes')
      import :: c_size_t
      type(*), intent(inout) :: value(*)
      integer(c_size_t), value :: bytes
    end subroutine
  end interface

contains

  !> dimensions: ten numbers each, the members of homing_dimension. sizes: of the GEN_BLOCK dimensions.
  function homing_layout_create(name, element_bits, rank, dimensions, sizes) result(layout)
    character(*), intent(in) :: name
    integer, intent(in) :: element_bits, rank
    integer(homing_long), intent(in) :: dimensions(:), sizes(:)
    type(homing_handle) :: layout
    layout = c_layout_create(name//c_null_char, 0_c_int, int(rank, c_int), int(element_bits/8, c_size_t), dimensions, sizes)
  end function

  !> The same, unless the layout is what it should be: was it made anew?
  logical function homing_layout_fitted(layout, name, element_bits, rank, dimensions, sizes) result(anew)
    type(homing_handle), intent(inout) :: layout
    character(*), intent(in) :: name
    integer, intent(in) :: element_bits, rank
    integer(homing_long), intent(in) :: dimensions(:), sizes(:)
    anew = c_layout_fit(layout, name//c_null_char, 0_c_int, int(rank, c_int), int(element_bits/8, c_size_t), dimensions, &
        & sizes) /= 0
  end function

  subroutine homing_layout_free(layout)
    type(homing_handle), intent(inout) :: layout
    layout = c_layout_free(layout)
  end subroutine

  !> Two arrays change places; their parts are the program's to move.
  subroutine homing_layout_swap(a, b)
    type(homing_handle), intent(inout) :: a, b
    type(homing_handle) :: first
    first = a
    a = b
    b = first
  end subroutine

  subroutine leave(left)
    type(homing_leaving), intent(inout) :: left
    if (associated(left%layout)) call homing_layout_free(left%layout)
  end subroutine

  !> Default integers, which is what array bounds are made of.
  pure integer function homing_low(layout, part, dimension)
    type(homing_handle), intent(in) :: layout
    integer, intent(in) :: part, dimension
    homing_low = int(c_low(layout, part, dimension))
  end function

  pure integer function homing_high(layout, part, dimension)
    type(homing_handle), intent(in) :: layout
    integer, intent(in) :: part, dimension
    homing_high = int(c_high(layout, part, dimension))
  end function

  pure logical function homing_owns(layout, part, dimension, index)
    type(homing_handle), intent(in) :: layout
    integer, intent(in) :: part, dimension
    integer(homing_long), intent(in) :: index
    homing_owns = c_owns(layout, part, dimension, index) /= 0
  end function

  !> The name of the file that this rank has in place of the one given; action: of the OPEN statement, or 'inquire'.
  function homing_file(name, action) result(own)
    character(*), intent(in) :: name
    character(*), intent(in), optional :: action
    character(:), allocatable :: own
    character(kind=c_char), pointer :: text(:)
    character(:), allocatable :: given
    integer(c_int) :: use
    integer(c_size_t) :: i
    type(c_ptr) :: found
    use = 0
    if (present(action)) then
      if (index('READ read Read', trim(adjustl(action))) > 0) use = 1
      if (action == 'inquire') use = 2
    end if
    given = trim(name)//c_null_char
    found = c_own_file(given, use)
    call c_f_pointer(found, text, [c_length(found)])
    allocate (character(size(text)) :: own)
    do i = 1, size(text, kind=c_size_t)
      own(i:i) = text(i)
    end do
  end function

  pure logical function homing_runs(layout, part, dimension, index, most)
    type(homing_handle), intent(in) :: layout
    integer, intent(in) :: part, dimension
    integer(homing_long), intent(in) :: index, most
    homing_runs = c_runs(layout, part, dimension, index, most) /= 0
  end function

  !> The value of the rank that says that it has it (mine = 1), for all ranks.
  subroutine homing_share_last(value, bits, mine)
    type(*), intent(inout) :: value
    integer, intent(in) :: bits, mine
    call c_share_last(value, int(bits/8, c_size_t), int(mine, c_int))
  end subroutine

  !> Rank 0's value for all ranks. bytes: of the whole.
  subroutine homing_share_value(value, bytes)
    type(*), intent(inout) :: value(*)
    integer, intent(in) :: bytes
    call c_share_bytes(value, int(bytes, c_size_t))
  end subroutine
end module homing_parts
