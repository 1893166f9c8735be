! The 20 charges of the right side: +1 at the points of the ten largest of a stream of random numbers, one for
! every point of the grid in the order of storage, and -1 at those of the ten smallest.
module mg_charges
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use nas_common
  implicit none
  private

  public :: set_charges

  integer, parameter :: charges = 10

contains

  ! The numbers of a plane are looked at and not stored, so v is touched by nobody but zero_all and then at
  ! the 20 points.
  subroutine set_charges(grid, n)
    integer, intent(in) :: n
    real(real64), intent(inout) :: grid(n, n, n)
    ! Of each plane, by rank; the smallest are negated.
    real(real64), allocatable :: largest(:, :), smallest(:, :)
    integer(int64), allocatable :: largest_at(:, :), smallest_at(:, :)
    integer :: i3

    allocate (largest(charges, 2:n - 1), smallest(charges, 2:n - 1))
    allocate (largest_at(charges, 2:n - 1), smallest_at(charges, 2:n - 1))
    !$omp parallel do schedule(static)
    do i3 = 2, n - 1
      call search_plane(i3 - 2, n - 2, largest(:, i3), largest_at(:, i3), smallest(:, i3), smallest_at(:, i3))
    end do
    !$omp end parallel do
    call set_at_top(largest, largest_at, 1.0_real64)
    call set_at_top(smallest, smallest_at, -1.0_real64)

  contains

    subroutine set_at_top(numbers, places, charge)
      real(real64), intent(in) :: numbers(:, :), charge
      integer(int64), intent(in) :: places(:, :)
      real(real64) :: top(charges)
      integer(int64) :: top_at(charges), points, at
      integer :: plane, k

      top = -huge(1.0_real64)
      top_at = 0
      do plane = 1, size(numbers, 2)
        do k = 1, charges
          call insert(numbers(k, plane), places(k, plane), top, top_at)
        end do
      end do
      points = n - 2
      do k = 1, charges
        at = top_at(k)
        grid(mod(at, points) + 2, mod(at/points, points) + 2, at/points**2 + 2) = charge
      end do
    end subroutine
  end subroutine

  ! `plane` counts from 0; a place is the number of the point in the grid without ghosts, from 0.
  subroutine search_plane(plane, points, largest, largest_at, smallest, smallest_at)
    integer, intent(in) :: plane, points
    real(real64), intent(out) :: largest(:), smallest(:)
    integer(int64), intent(out) :: largest_at(:), smallest_at(:)
    integer(int64) :: state, place, first
    real(real64) :: number

    largest = -huge(number)
    smallest = -huge(number)
    largest_at = 0
    smallest_at = 0
    first = int(plane, int64)*int(points, int64)**2
    state = random_skip(random_seed_value, first)
    do place = first, first + int(points, int64)**2 - 1
      number = random_next(state)
      if (number > largest(charges)) call insert(number, place, largest, largest_at)
      if (-number > smallest(charges)) call insert(-number, place, smallest, smallest_at)
    end do
  end subroutine

  ! Keeps `top` in descending order; what falls off its end is forgotten.
  subroutine insert(number, place, top, top_at)
    real(real64), intent(in) :: number
    integer(int64), intent(in) :: place
    real(real64), intent(inout) :: top(:)
    integer(int64), intent(inout) :: top_at(:)
    integer :: k

    if (number <= top(charges)) return
    k = charges
    do while (k > 1)
      if (top(k - 1) >= number) exit
      top(k) = top(k - 1)
      top_at(k) = top_at(k - 1)
      k = k - 1
    end do
    top(k) = number
    top_at(k) = place
  end subroutine
end module
