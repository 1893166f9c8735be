! The matrix of I-CG, read from a Matrix Market file.
!
! The master thread reads the file, as in the paper. A file lists entries in any order and, where it is
! symmetric, half of them, so what was read waits in a list until the rows are known.
module matrix_file
  use, intrinsic :: iso_fortran_env, only: real64
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_long, c_null_char
  use app
  use sparse_rows
  implicit none
  private

  public :: read_matrix

  type, bind(c) :: file_size
    integer(c_long) :: rows, columns, entries
    integer(c_int) :: symmetric
  end type

  ! What the file holds, and its entries by row: row i has entries abs(order(k)), k from first(i) to
  ! first(i+1)-1. Entries of the lower triangle of a symmetric matrix belong to two rows; in that of their
  ! column they are negative.
  type :: entry_list
    logical :: symmetric = .false.
    integer(c_int), allocatable :: row(:), column(:)
    real(c_double), allocatable :: element(:)
    integer, allocatable :: first(:), order(:)
  end type

  interface
    subroutine c_open(path, size) bind(c, name="matrix_market_open")
      import
      character(kind=c_char), intent(in) :: path(*)
      type(file_size), intent(out) :: size
    end subroutine

    subroutine matrix_market_next(row, column, element) bind(c)
      import
      integer(c_int), intent(out) :: row, column
      real(c_double), intent(out) :: element
    end subroutine

    subroutine matrix_market_close() bind(c)
    end subroutine
  end interface

contains

  ! First touch of row_start, column and element happens in fill_blocks and nowhere else.
  subroutine read_matrix(path, parallel_initialisation)
    character(*), intent(in) :: path
    logical, intent(in) :: parallel_initialisation
    type(entry_list) :: entries
    integer :: status

    call read_entries(path, entries)
    call order_by_row(entries)
    allocate (row_start(rows + 1), column(size(entries%order)), element(size(entries%order)), stat=status)
    if (status /= 0) call app_error("not enough memory for the matrix")
    ! As in make_vectors: outside of a region the master thread fills everything.
    if (parallel_initialisation) then
      !$omp parallel
      call fill_blocks(entries)
      !$omp end parallel
    else
      call fill_blocks(entries)
    end if
  end subroutine

  subroutine read_entries(path, entries)
    character(*), intent(in) :: path
    type(entry_list), intent(out) :: entries
    type(file_size) :: file
    integer :: k, n, status

    call c_open(path//c_null_char, file)
    if (file%rows /= file%columns) call app_error(path//": the matrix must be square")
    if (file%entries > shiftr(huge(n), 1)) call app_error(path//": has more entries than a default integer counts")
    call set_rows(int(file%rows))
    n = int(file%entries)
    allocate (entries%row(n), entries%column(n), entries%element(n), stat=status)
    if (status /= 0) call app_error("not enough memory to read the matrix")
    do k = 1, n
      call matrix_market_next(entries%row(k), entries%column(k), entries%element(k))
    end do
    call matrix_market_close()
    entries%symmetric = file%symmetric /= 0
  end subroutine

  subroutine order_by_row(entries)
    type(entry_list), intent(inout) :: entries
    integer, allocatable :: next(:)
    integer :: k, row, status

    allocate (entries%first(rows + 1), stat=status)
    if (status /= 0) call app_error("not enough memory to read the matrix")
    allocate (next(rows), source=0)
    do k = 1, size(entries%row)
      next(entries%row(k)) = next(entries%row(k)) + 1
      if (is_mirrored(entries, k)) next(entries%column(k)) = next(entries%column(k)) + 1
    end do
    entries%first(1) = 1
    do row = 1, rows
      entries%first(row + 1) = entries%first(row) + next(row)
      next(row) = entries%first(row)
    end do
    allocate (entries%order(entries%first(rows + 1) - 1), stat=status)
    if (status /= 0) call app_error("not enough memory to read the matrix")
    do k = 1, size(entries%row)
      entries%order(next(entries%row(k))) = k
      next(entries%row(k)) = next(entries%row(k)) + 1
      if (.not. is_mirrored(entries, k)) cycle
      entries%order(next(entries%column(k))) = -k
      next(entries%column(k)) = next(entries%column(k)) + 1
    end do
  end subroutine

  pure logical function is_mirrored(entries, k)
    type(entry_list), intent(in) :: entries
    integer, intent(in) :: k
    is_mirrored = entries%symmetric .and. entries%row(k) /= entries%column(k)
  end function

  ! First touch of the matrix: the blocks are dealt out as in all loops of the solver.
  subroutine fill_blocks(entries)
    type(entry_list), intent(in) :: entries
    integer :: block, row

    !$omp do schedule(static)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        call fill_row(entries, row)
      end do
      if (block == blocks) row_start(rows + 1) = entries%first(rows + 1)
    end do
    !$omp end do
  end subroutine

  ! In ascending order of the columns, by insertion: rows are short, and nearly in order where the file is.
  subroutine fill_row(entries, row)
    type(entry_list), intent(in) :: entries
    integer, intent(in) :: row
    integer :: first, k, from, to, at

    first = entries%first(row)
    row_start(row) = first
    do k = first, entries%first(row + 1) - 1
      from = abs(entries%order(k))
      to = merge(entries%column(from), entries%row(from), entries%order(k) > 0)
      at = k
      do while (at > first)
        if (column(at - 1) <= to) exit
        column(at) = column(at - 1)
        element(at) = element(at - 1)
        at = at - 1
      end do
      column(at) = to
      element(at) = entries%element(from)
    end do
  end subroutine
end module
