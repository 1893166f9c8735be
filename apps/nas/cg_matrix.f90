! The matrix of the NAS benchmark CG.
!
! A = sum over i of w(i) x(i) x(i)^T + (0.1 - shift) I, where x(i) are sparse random vectors and w(i) falls
! geometrically from 1 to 0.1. Source: RNR-94-007 (see common.f90), kernel CG;
! the published programs call these steps makea, sprnvc, vecset and sparse.
!
! The specification gives the order in which random numbers are drawn and the values; how the sum is
! assembled is free. Here each row is assembled by itself, from a list of the vectors that reach into it, so
! that in parallel every thread can fill, and so touch first, the rows that it will use.
module cg_matrix
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int
  use app
  use nas_common
  use sparse_rows
  implicit none
  private

  public :: make_matrix

  real(real64), parameter :: condition = 0.1_real64

  ! The sparse vectors x(1) .. x(rows): vector i has `length(i)` entries.
  type :: sparse_vectors
    integer, allocatable :: length(:), position(:, :)
    real(real64), allocatable :: number(:, :)
    real(real64), allocatable :: weight(:)
    ! Row r is reached by vectors vector_of(k), in their entries entry_of(k), for k from reach(r) to
    ! reach(r+1)-1.
    integer, allocatable :: reach(:), vector_of(:), entry_of(:)
  end type

contains

  ! Makes the matrix of order n. First touch of row_start, column and element happens in assemble_blocks and
  ! nowhere else.
  subroutine make_matrix(n, nonzeros_a_vector, shift, initialisation)
    integer, intent(in) :: n, nonzeros_a_vector
    real(real64), intent(in) :: shift
    integer(c_int), intent(in) :: initialisation
    type(sparse_vectors) :: vectors
    integer, allocatable :: start(:), unmerged_start(:)
    integer :: row, status

    call set_rows(n)
    call draw_vectors(n, nonzeros_a_vector, vectors)
    call find_reach(n, vectors)

    allocate (start(n + 1))
    call count_rows(vectors, start)
    start(1) = 1
    do row = 1, n
      start(row + 1) = start(row) + start(row + 1)
    end do

    allocate (row_start(n + 1), column(start(n + 1) - 1), element(start(n + 1) - 1), stat=status)
    if (status /= 0) call app_error("not enough memory for the matrix")
    ! The worksharing loop in assemble_blocks binds to the region around it: called outside of one, the
    ! master thread runs all of it.
    if (initialisation == app_published) then
      allocate (unmerged_start(n + 1))
      call count_unmerged(vectors, unmerged_start)
      !$omp parallel
      call preload_blocks(unmerged_start)
      !$omp end parallel
    end if
    if (initialisation == app_parallel) then
      !$omp parallel
      call assemble_blocks(vectors, start, shift)
      !$omp end parallel
    else
      call assemble_blocks(vectors, start, shift)
    end if
  end subroutine

  ! The specification's sequence of random numbers: value, place, value, place, ... A place outside of the
  ! matrix or one that the vector already has is thrown away together with its value.
  subroutine draw_vectors(n, nonzeros, vectors)
    integer, intent(in) :: n, nonzeros
    type(sparse_vectors), intent(out) :: vectors
    integer(int64) :: state
    integer :: i, k, place, power_of_two
    real(real64) :: number, weight, ratio

    allocate (vectors%length(n), vectors%weight(n))
    allocate (vectors%position(nonzeros + 1, n), vectors%number(nonzeros + 1, n))
    power_of_two = 1
    do while (power_of_two < n)
      power_of_two = 2*power_of_two
    end do

    state = random_seed_value
    number = random_next(state) ! the published programs draw one number before the matrix
    weight = 1
    ratio = condition**(1/real(n, real64))
    do i = 1, n
      k = 0
      do while (k < nonzeros)
        number = random_next(state)
        place = int(power_of_two*random_next(state)) + 1
        if (place > n) cycle
        if (any(vectors%position(1:k, i) == place)) cycle
        k = k + 1
        vectors%number(k, i) = number
        vectors%position(k, i) = place
      end do
      ! Entry i of vector i is 0.5.
      place = findloc(vectors%position(1:k, i), i, dim=1)
      if (place == 0) then
        k = k + 1
        place = k
      end if
      vectors%position(place, i) = i
      vectors%number(place, i) = 0.5_real64
      vectors%length(i) = k
      vectors%weight(i) = weight
      weight = weight*ratio
    end do
  end subroutine

  ! Inverts the vectors: for each row, the vectors that reach into it, in ascending order.
  subroutine find_reach(n, vectors)
    integer, intent(in) :: n
    type(sparse_vectors), intent(inout) :: vectors
    integer, allocatable :: next(:)
    integer :: i, k, row

    allocate (vectors%reach(n + 1), next(n))
    next = 0
    do i = 1, n
      do k = 1, vectors%length(i)
        next(vectors%position(k, i)) = next(vectors%position(k, i)) + 1
      end do
    end do
    vectors%reach(1) = 1
    do row = 1, n
      vectors%reach(row + 1) = vectors%reach(row) + next(row)
      next(row) = vectors%reach(row)
    end do
    allocate (vectors%vector_of(vectors%reach(n + 1) - 1), vectors%entry_of(vectors%reach(n + 1) - 1))
    do i = 1, n
      do k = 1, vectors%length(i)
        row = vectors%position(k, i)
        vectors%vector_of(next(row)) = i
        vectors%entry_of(next(row)) = k
        next(row) = next(row) + 1
      end do
    end do
  end subroutine

  ! start(r + 1) becomes the number of different columns of row r.
  subroutine count_rows(vectors, start)
    type(sparse_vectors), intent(in) :: vectors
    integer, intent(out) :: start(:)
    integer, allocatable :: last_row(:)
    integer :: row, k, e, i

    allocate (last_row(rows))
    last_row = 0
    start = 0
    do row = 1, rows
      do k = vectors%reach(row), vectors%reach(row + 1) - 1
        i = vectors%vector_of(k)
        do e = 1, vectors%length(i)
          if (last_row(vectors%position(e, i)) == row) cycle
          last_row(vectors%position(e, i)) = row
          start(row + 1) = start(row + 1) + 1
        end do
      end do
    end do
  end subroutine

  ! Where rows would begin if entries with the same column were not added up, as the published programs lay
  ! them out at first.
  subroutine count_unmerged(vectors, start)
    type(sparse_vectors), intent(in) :: vectors
    integer, intent(out) :: start(:)
    integer :: row, k

    start(1) = 1
    do row = 1, rows
      start(row + 1) = start(row) + 1 ! the entry of the shift
      do k = vectors%reach(row), vectors%reach(row + 1) - 1
        start(row + 1) = start(row + 1) + vectors%length(vectors%vector_of(k))
      end do
    end do
  end subroutine

  ! The loop of the published OpenMP program (NAS Parallel Benchmarks 3.0) that touches the elements, and only
  ! them, in parallel before equal columns are added up. The rows that a thread works on later lie lower.
  subroutine preload_blocks(start)
    integer, intent(in) :: start(:)
    integer :: block, k

    !$omp do schedule(static)
    do block = 1, blocks
      do k = start(block_first(block)), min(start(block_last(block) + 1) - 1, size(element))
        element(k) = 0
      end do
    end do
    !$omp end do
  end subroutine

  ! First touch of the matrix: the blocks are dealt out as in all loops of conj_grad.
  subroutine assemble_blocks(vectors, start, shift)
    type(sparse_vectors), intent(in) :: vectors
    integer, intent(in) :: start(:)
    real(real64), intent(in) :: shift
    ! The sparse accumulator of one row: its sum so far by column, and which row the sum belongs to.
    real(real64), allocatable :: total(:)
    integer, allocatable :: last_row(:), columns(:)
    integer :: block, row

    allocate (total(rows), last_row(rows), columns(rows))
    last_row = 0
    !$omp do schedule(static)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        call assemble_row(vectors, row, start(row), shift, total, last_row, columns)
        row_start(row) = start(row)
      end do
      if (block == blocks) row_start(rows + 1) = start(rows + 1)
    end do
    !$omp end do
  end subroutine

  subroutine assemble_row(vectors, row, first, shift, total, last_row, columns)
    type(sparse_vectors), intent(in) :: vectors
    integer, intent(in) :: row, first
    real(real64), intent(in) :: shift
    real(real64), intent(inout) :: total(:)
    integer, intent(inout) :: last_row(:), columns(:)
    integer :: count, k, e, i, place
    real(real64) :: factor, summand

    count = 0
    do k = vectors%reach(row), vectors%reach(row + 1) - 1
      i = vectors%vector_of(k)
      factor = vectors%weight(i)*vectors%number(vectors%entry_of(k), i)
      do e = 1, vectors%length(i)
        place = vectors%position(e, i)
        summand = vectors%number(e, i)*factor
        if (place == row .and. i == row) summand = summand + condition - shift
        if (last_row(place) /= row) then
          last_row(place) = row
          total(place) = 0
          count = count + 1
          columns(count) = place
        end if
        total(place) = total(place) + summand
      end do
    end do
    call sort(columns(1:count))
    do k = 1, count
      column(first + k - 1) = columns(k)
      element(first + k - 1) = total(columns(k))
    end do
  end subroutine

  ! Shell's sort with gaps 3h + 1: rows have a few hundred columns.
  pure subroutine sort(list)
    integer, intent(inout) :: list(:)
    integer :: gap, i, j, moving

    gap = 1
    do while (gap < size(list)/3)
      gap = 3*gap + 1
    end do
    do while (gap > 0)
      do i = gap + 1, size(list)
        moving = list(i)
        j = i
        do while (j > gap)
          if (list(j - gap) <= moving) exit
          list(j) = list(j - gap)
          j = j - gap
        end do
        list(j) = moving
      end do
      gap = gap/3
    end do
  end subroutine
end module
