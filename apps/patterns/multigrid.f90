! Levels of grids, each with allocations of its own, down to the coarsest and up again in every iteration.
!
! Truth: u, r of every level: DISTRIBUTE(*, BLOCK) over all threads.
module multigrid
  use, intrinsic :: iso_c_binding, only: c_long
  use pattern
  implicit none
  private

  public :: allocate_arrays, fill, iterate, checksum

  integer, parameter :: levels = 4

  type :: level
    integer(word) :: n ! words of a column, and columns
    integer(word), allocatable :: u(:, :), r(:, :)
  end type

  type(level) :: grids(levels) ! the finest first

contains

  ! All levels together have 4/3 of the words of the finest.
  integer(c_long) function allocate_arrays(bytes) result(made)
    integer(c_long), intent(in) :: bytes
    integer(word) :: n
    integer :: l

    n = int(sqrt(real(bytes/word_bytes*3/8)), word)/2**(levels - 1)*2**(levels - 1)
    made = 0
    do l = 1, levels
      grids(l)%n = n/2**(l - 1)
      allocate (grids(l)%u(grids(l)%n, grids(l)%n), grids(l)%r(grids(l)%n, grids(l)%n))
      made = made + 2*grids(l)%n**2*word_bytes
    end do
  end function

  subroutine fill()
    integer(word) :: i, j
    integer :: l

    do l = 1, levels
      !$omp do schedule(static)
      do j = 1, grids(l)%n
        do i = 1, grids(l)%n
          grids(l)%u(i, j) = i + j + l
          grids(l)%r(i, j) = 0
        end do
      end do
      !$omp end do
    end do
  end subroutine

  subroutine iterate(number, iterations)
    integer(c_long), intent(in) :: number, iterations
    integer :: l

    do l = 1, levels - 1
      call smooth(grids(l)%n, grids(l)%u, grids(l)%r, number + iterations)
      call restrict_to(grids(l + 1)%n, grids(l)%r, grids(l + 1)%u)
    end do
    call smooth(grids(levels)%n, grids(levels)%u, grids(levels)%r, number)
    do l = levels - 1, 1, -1
      call interpolate_to(grids(l)%n, grids(l + 1)%r, grids(l)%u)
      call smooth(grids(l)%n, grids(l)%u, grids(l)%r, number)
    end do
  end subroutine

  subroutine smooth(n, u, r, number)
    integer(word), intent(in) :: n, number
    integer(word), intent(inout) :: u(n, n), r(n, n)
    integer(word) :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 2, n - 1
      do i = 2, n - 1
        r(i, j) = iand(u(i, j) + u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) + number, mask)
      end do
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static) private(i)
    do j = 1, n
      do i = 1, n
        u(i, j) = iand(u(i, j) + 5*r(i, j), mask)
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine restrict_to(n, fine, coarse)
    integer(word), intent(in) :: n, fine(2*n, 2*n)
    integer(word), intent(inout) :: coarse(n, n)
    integer(word) :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, n
      do i = 1, n
        coarse(i, j) = iand(coarse(i, j) + fine(2*i, 2*j) + fine(2*i - 1, 2*j - 1), mask)
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine interpolate_to(n, coarse, fine)
    integer(word), intent(in) :: n, coarse(n/2, n/2)
    integer(word), intent(inout) :: fine(n, n)
    integer(word) :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, n
      do i = 1, n
        fine(i, j) = iand(fine(i, j) + coarse((i + 1)/2, (j + 1)/2), mask)
      end do
    end do
    !$omp end parallel do
  end subroutine

  integer(c_long) function checksum() result(total)
    integer(word) :: j
    integer :: l

    total = 0
    do l = 1, levels
      do j = 1, grids(l)%n
        total = pattern_sum(pattern_sum(total, grids(l)%u(:, j)), grids(l)%r(:, j))
      end do
    end do
  end function
end module

program pattern_multigrid
  use pattern, only: pattern_run
  use multigrid
  implicit none

  call pattern_run("pattern_multigrid", allocate_arrays, fill, iterate, checksum)
end program
