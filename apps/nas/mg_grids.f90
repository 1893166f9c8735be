! The grids of the NAS benchmark MG.
!
! As in the published programs all levels of u lie in one one-dimensional array, finest first, and so do all
! levels of r; v exists on the finest level only. A level with 2**k points a side is stored with one ghost
! plane on each side.
module mg_grids
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int
  use app
  implicit none
  private

  public :: make_grids, zero_grid

  integer, public :: levels                        ! level 1 has 2 points a side, level `levels` is the finest
  integer, allocatable, public :: side(:)          ! points a side with ghosts, by level
  integer(int64), allocatable, public :: offset(:) ! where a level begins in u and in r
  real(real64), allocatable, public :: u(:), v(:), r(:)

contains

  subroutine make_grids(points, initialisation)
    integer, intent(in) :: points
    integer(c_int), intent(in) :: initialisation
    integer(int64) :: total
    integer :: level, status

    levels = 0
    do while (2**levels < points)
      levels = levels + 1
    end do
    allocate (side(levels), offset(levels))
    total = 0
    do level = levels, 1, -1
      side(level) = 2**level + 2
      offset(level) = total + 1
      total = total + int(side(level), int64)**3
    end do
    allocate (u(total), r(total), v(int(side(levels), int64)**3), stat=status)
    if (status /= 0) call app_error("not enough memory for the grids")
    ! The worksharing loop in zero_planes binds to the region around it: called outside of one, the
    ! master thread runs all of it.
    if (initialisation == app_parallel) then
      !$omp parallel
      call zero_all(.true.)
      !$omp end parallel
    else
      call zero_all(initialisation /= app_first_use)
    end if
  end subroutine

  ! First touch of u, v and, unless the solver is to do that, r: all of it is computed before it is read.
  subroutine zero_all(with_r)
    logical, intent(in) :: with_r
    integer :: level

    do level = levels, 1, -1
      call zero_planes(u(offset(level)), side(level))
      if (with_r) call zero_planes(r(offset(level)), side(level))
    end do
    call zero_planes(v, side(levels))
  end subroutine

  subroutine zero_grid(grid, n)
    integer, intent(in) :: n
    real(real64), intent(inout) :: grid(n, n, n)

    !$omp parallel
    call zero_planes(grid, n)
    !$omp end parallel
  end subroutine

  ! Dealt out as the interior planes are in all loops; a ghost plane goes with its neighbour.
  subroutine zero_planes(grid, n)
    integer, intent(in) :: n
    real(real64), intent(inout) :: grid(n, n, n)
    integer :: i3

    !$omp do schedule(static)
    do i3 = 2, n - 1
      if (i3 == 2) call zero_plane(grid(1, 1, 1), n)
      call zero_plane(grid(1, 1, i3), n)
      if (i3 == n - 1) call zero_plane(grid(1, 1, n), n)
    end do
    !$omp end do
  end subroutine

  subroutine zero_plane(plane, n)
    integer, intent(in) :: n
    real(real64), intent(inout) :: plane(n, n)
    plane = 0
  end subroutine
end module
