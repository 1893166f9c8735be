! The NAS benchmark MG: V-cycles of multigrid for a Poisson equation with periodic boundaries on a cube.
!
! Source: RNR-94-007 (see common.f90), kernel MG; classes, coefficients and values as published with the NAS
! Parallel Benchmarks 3.
!
! Every loop is a parallel region of its own (the copying of ghosts is one with two loops). All of them deal
! out the planes of a level by schedule(static): the interior ones, in restrict those of the coarse level,
! in interpolate those of the coarse level with a ghost plane. So a thread uses the same part of a level
! everywhere, but for one or two planes at its borders.

! The operators of the V-cycle. Each weighs the 27 neighbours of a point by their distance class: centre,
! faces, edges, corners. The sums over the neighbours in the other two directions are shared along a line.
module mg_operators
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mg_grids
  implicit none
  private

  public :: v_cycle, residual, norm, smoother_small, smoother_large

  ! Of the operator A; faces have weight 0.
  real(real64), parameter :: a_centre = -8.0_real64/3, a_edge = 1.0_real64/6, a_corner = 1.0_real64/12
  ! Of the smoother, by centre, face and edge, for the classes S W A and B C; corners have weight 0.
  real(real64), parameter :: smoother_small(3) = [-3.0_real64/8, 1.0_real64/32, -1.0_real64/64]
  real(real64), parameter :: smoother_large(3) = [-3.0_real64/17, 1.0_real64/33, -1.0_real64/61]

contains

  subroutine v_cycle(smoother)
    real(real64), intent(in) :: smoother(3)
    integer :: level

    do level = levels, 2, -1
      call restrict(r(offset(level)), side(level), r(offset(level - 1)), side(level - 1))
    end do
    call zero_grid(u(offset(1)), side(1))
    call smooth(r(offset(1)), u(offset(1)), side(1), smoother)
    do level = 2, levels - 1
      call zero_grid(u(offset(level)), side(level))
      call interpolate(u(offset(level - 1)), side(level - 1), u(offset(level)), side(level))
      call residual_in_place(u(offset(level)), r(offset(level)), side(level))
      call smooth(r(offset(level)), u(offset(level)), side(level), smoother)
    end do
    call interpolate(u(offset(levels - 1)), side(levels - 1), u(offset(levels)), side(levels))
    call residual(u, v, r, side(levels))
    call smooth(r, u, side(levels), smoother)
  end subroutine

  ! r = v - A u
  subroutine residual(u, v, r, n)
    integer, intent(in) :: n
    real(real64), intent(in) :: u(n, n, n), v(n, n, n)
    real(real64), intent(inout) :: r(n, n, n)
    integer :: i3

    !$omp parallel do schedule(static)
    do i3 = 2, n - 1
      call residual_plane(u, v, r, n, i3)
    end do
    !$omp end parallel do
    call copy_ghosts(r, n)
  end subroutine

  subroutine residual_plane(u, v, r, n, i3)
    integer, intent(in) :: n, i3
    real(real64), intent(in) :: u(n, n, n), v(n, n, n)
    real(real64), intent(inout) :: r(n, n, n)
    real(real64) :: applied(2:n - 1)
    integer :: i2

    do i2 = 2, n - 1
      call apply_to_line(u, n, i2, i3, applied)
      r(2:n - 1, i2, i3) = v(2:n - 1, i2, i3) - applied
    end do
  end subroutine

  ! r = r - A u, which Fortran forbids to write as residual(u, r, r, n).
  subroutine residual_in_place(u, r, n)
    integer, intent(in) :: n
    real(real64), intent(in) :: u(n, n, n)
    real(real64), intent(inout) :: r(n, n, n)
    integer :: i3

    !$omp parallel do schedule(static)
    do i3 = 2, n - 1
      call residual_plane_in_place(u, r, n, i3)
    end do
    !$omp end parallel do
    call copy_ghosts(r, n)
  end subroutine

  subroutine residual_plane_in_place(u, r, n, i3)
    integer, intent(in) :: n, i3
    real(real64), intent(in) :: u(n, n, n)
    real(real64), intent(inout) :: r(n, n, n)
    real(real64) :: applied(2:n - 1)
    integer :: i2

    do i2 = 2, n - 1
      call apply_to_line(u, n, i2, i3, applied)
      r(2:n - 1, i2, i3) = r(2:n - 1, i2, i3) - applied
    end do
  end subroutine

  ! One line of A u.
  subroutine apply_to_line(u, n, i2, i3, applied)
    integer, intent(in) :: n, i2, i3
    real(real64), intent(in) :: u(n, n, n)
    real(real64), intent(out) :: applied(2:n - 1)
    real(real64) :: near(n), far(n)
    integer :: i1

    call sum_line(u, n, i2, i3, near, far)
    do i1 = 2, n - 1
      applied(i1) = a_centre*u(i1, i2, i3) + a_edge*(far(i1) + near(i1 - 1) + near(i1 + 1)) &
          + a_corner*(far(i1 - 1) + far(i1 + 1))
    end do
  end subroutine

  ! u = u + S r
  subroutine smooth(r, u, n, weight)
    integer, intent(in) :: n
    real(real64), intent(in) :: r(n, n, n), weight(3)
    real(real64), intent(inout) :: u(n, n, n)
    integer :: i3

    !$omp parallel do schedule(static)
    do i3 = 2, n - 1
      call smooth_plane(r, u, n, i3, weight)
    end do
    !$omp end parallel do
    call copy_ghosts(u, n)
  end subroutine

  subroutine smooth_plane(r, u, n, i3, weight)
    integer, intent(in) :: n, i3
    real(real64), intent(in) :: r(n, n, n), weight(3)
    real(real64), intent(inout) :: u(n, n, n)
    real(real64) :: near(n), far(n)
    integer :: i1, i2

    do i2 = 2, n - 1
      call sum_line(r, n, i2, i3, near, far)
      do i1 = 2, n - 1
        u(i1, i2, i3) = u(i1, i2, i3) + weight(1)*r(i1, i2, i3) &
            + weight(2)*(r(i1 - 1, i2, i3) + r(i1 + 1, i2, i3) + near(i1)) &
            + weight(3)*(far(i1) + near(i1 - 1) + near(i1 + 1))
      end do
    end do
  end subroutine

  ! Sums over the 4 neighbours at distance 1 and over the 4 at distance sqrt 2 in the plane across the line.
  subroutine sum_line(grid, n, i2, i3, near, far)
    integer, intent(in) :: n, i2, i3
    real(real64), intent(in) :: grid(n, n, n)
    real(real64), intent(out) :: near(n), far(n)
    integer :: i1

    do i1 = 1, n
      near(i1) = grid(i1, i2 - 1, i3) + grid(i1, i2 + 1, i3) + grid(i1, i2, i3 - 1) + grid(i1, i2, i3 + 1)
      far(i1) = grid(i1, i2 - 1, i3 - 1) + grid(i1, i2 + 1, i3 - 1) &
          + grid(i1, i2 - 1, i3 + 1) + grid(i1, i2 + 1, i3 + 1)
    end do
  end subroutine

  ! coarse = P fine, the full weighting of the fine points around each coarse one.
  subroutine restrict(fine, n, coarse, m)
    integer, intent(in) :: n, m
    real(real64), intent(in) :: fine(n, n, n)
    real(real64), intent(inout) :: coarse(m, m, m)
    integer :: j3

    !$omp parallel do schedule(static)
    do j3 = 2, m - 1
      call restrict_plane(fine, n, coarse, m, j3)
    end do
    !$omp end parallel do
    call copy_ghosts(coarse, m)
  end subroutine

  subroutine restrict_plane(fine, n, coarse, m, j3)
    integer, intent(in) :: n, m, j3
    real(real64), intent(in) :: fine(n, n, n)
    real(real64), intent(inout) :: coarse(m, m, m)
    real(real64) :: near(n), far(n)
    integer :: j1, j2, i1, i2

    do j2 = 2, m - 1
      i2 = 2*j2 - 1
      call sum_line(fine, n, i2, 2*j3 - 1, near, far)
      do j1 = 2, m - 1
        i1 = 2*j1 - 1
        coarse(j1, j2, j3) = 0.5_real64*fine(i1, i2, 2*j3 - 1) &
            + 0.25_real64*(fine(i1 - 1, i2, 2*j3 - 1) + fine(i1 + 1, i2, 2*j3 - 1) + near(i1)) &
            + 0.125_real64*(near(i1 - 1) + near(i1 + 1) + far(i1)) &
            + 0.0625_real64*(far(i1 - 1) + far(i1 + 1))
      end do
    end do
  end subroutine

  ! fine = fine + Q coarse, trilinear. Coarse plane j3 serves the fine planes 2 j3 - 1 and 2 j3, ghosts
  ! included, so that no copying is needed afterwards.
  subroutine interpolate(coarse, m, fine, n)
    integer, intent(in) :: m, n
    real(real64), intent(in) :: coarse(m, m, m)
    real(real64), intent(inout) :: fine(n, n, n)
    integer :: j3

    !$omp parallel do schedule(static)
    do j3 = 1, m - 1
      call interpolate_plane(coarse, m, fine, n, j3)
    end do
    !$omp end parallel do
  end subroutine

  subroutine interpolate_plane(coarse, m, fine, n, j3)
    integer, intent(in) :: m, n, j3
    real(real64), intent(in) :: coarse(m, m, m)
    real(real64), intent(inout) :: fine(n, n, n)
    ! Sums of coarse points of one line: over the neighbour in direction 2, in direction 3, and over all four.
    real(real64) :: with_2(m), with_3(m), with_both(m)
    integer :: j1, j2

    do j2 = 1, m - 1
      do j1 = 1, m
        with_2(j1) = coarse(j1, j2 + 1, j3) + coarse(j1, j2, j3)
        with_3(j1) = coarse(j1, j2, j3 + 1) + coarse(j1, j2, j3)
        with_both(j1) = coarse(j1, j2 + 1, j3 + 1) + coarse(j1, j2, j3 + 1) + with_2(j1)
      end do
      do j1 = 1, m - 1
        fine(2*j1 - 1, 2*j2 - 1, 2*j3 - 1) = fine(2*j1 - 1, 2*j2 - 1, 2*j3 - 1) + coarse(j1, j2, j3)
        fine(2*j1, 2*j2 - 1, 2*j3 - 1) = fine(2*j1, 2*j2 - 1, 2*j3 - 1) &
            + 0.5_real64*(coarse(j1 + 1, j2, j3) + coarse(j1, j2, j3))
        fine(2*j1 - 1, 2*j2, 2*j3 - 1) = fine(2*j1 - 1, 2*j2, 2*j3 - 1) + 0.5_real64*with_2(j1)
        fine(2*j1, 2*j2, 2*j3 - 1) = fine(2*j1, 2*j2, 2*j3 - 1) + 0.25_real64*(with_2(j1) + with_2(j1 + 1))
        fine(2*j1 - 1, 2*j2 - 1, 2*j3) = fine(2*j1 - 1, 2*j2 - 1, 2*j3) + 0.5_real64*with_3(j1)
        fine(2*j1, 2*j2 - 1, 2*j3) = fine(2*j1, 2*j2 - 1, 2*j3) + 0.25_real64*(with_3(j1) + with_3(j1 + 1))
        fine(2*j1 - 1, 2*j2, 2*j3) = fine(2*j1 - 1, 2*j2, 2*j3) + 0.25_real64*with_both(j1)
        fine(2*j1, 2*j2, 2*j3) = fine(2*j1, 2*j2, 2*j3) + 0.125_real64*(with_both(j1) + with_both(j1 + 1))
      end do
    end do
  end subroutine

  ! Periodic boundaries: each ghost becomes a copy of the interior point on the other side.
  subroutine copy_ghosts(grid, n)
    integer, intent(in) :: n
    real(real64), intent(inout) :: grid(n, n, n)
    integer :: i2, i3

    !$omp parallel private(i2)
    !$omp do schedule(static)
    do i3 = 2, n - 1
      do i2 = 2, n - 1
        grid(1, i2, i3) = grid(n - 1, i2, i3)
        grid(n, i2, i3) = grid(2, i2, i3)
      end do
      grid(:, 1, i3) = grid(:, n - 1, i3)
      grid(:, n, i3) = grid(:, 2, i3)
    end do
    !$omp end do
    !$omp do schedule(static)
    do i2 = 1, n
      grid(:, i2, 1) = grid(:, i2, n - 1)
      grid(:, i2, n) = grid(:, i2, 2)
    end do
    !$omp end do
    !$omp end parallel
  end subroutine

  ! The root of the mean square over the interior, summed plane by plane so that its digits do not depend on
  ! the number of threads.
  real(real64) function norm(r, n) result(root)
    integer, intent(in) :: n
    real(real64), intent(in) :: r(n, n, n)
    real(real64) :: of_plane(n)
    integer :: i2, i3

    !$omp parallel do schedule(static) private(i2)
    do i3 = 2, n - 1
      of_plane(i3) = 0
      do i2 = 2, n - 1
        of_plane(i3) = of_plane(i3) + sum(r(2:n - 1, i2, i3)**2)
      end do
    end do
    !$omp end parallel do
    root = 0
    do i3 = 2, n - 1
      root = root + of_plane(i3)
    end do
    root = sqrt(root/real(n - 2, real64)**3)
  end function
end module

program mg
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use nas_common
  use mg_grids
  use mg_charges
  use mg_operators
  implicit none

  ! By class: S, W, A, B, C.
  integer, parameter :: points(5) = [32, 128, 256, 256, 512]
  integer, parameter :: published_iterations(5) = [4, 4, 4, 20, 20]
  real(real64), parameter :: published_norm(5) = [5.307707005734e-05_real64, 6.467329375339e-06_real64, &
      2.433365309069e-06_real64, 1.800564401355e-06_real64, 5.70673228574e-07_real64]
  real(real64), parameter :: tolerance = 1.0e-8_real64

  type(nas_run) :: run
  real(real64) :: smoother(3), last_norm
  integer(c_long) :: iteration
  integer :: n

  run = nas_options("mg", published_iterations, "first-use", app_first_use)
  smoother = smoother_small
  if (run%class > 3) smoother = smoother_large
  call make_grids(points(run%class), run%initialisation)
  n = side(levels)
  call describe()
  call set_charges(v, n)

  ! One iteration that is not timed, as published, then from the start again. (v is never written after its
  ! charges are set.)
  call residual(u, v, r, n)
  call v_cycle(smoother)
  call residual(u, v, r, n)
  call zero_grid(u, n)
  call residual(u, v, r, n)

  call app_iterations_begin(run%iterations)
  do iteration = 1, run%iterations
    call app_iteration_begin()
    call v_cycle(smoother)
    call residual(u, v, r, n)
    call app_iteration_end()
  end do
  call app_iterations_end()

  last_norm = norm(r, n)
  call app_result("norm of the residual", last_norm)
  if (run%published_iterations) then
    call app_result("published norm", published_norm(run%class))
    call app_finish(app_compare(last_norm, published_norm(run%class), tolerance))
  else
    call app_finish(app_not_applicable)
  end if

contains

  subroutine describe()
    character(len=80) :: text
    integer(int64) :: bytes

    write (text, "('class ', a, ', ', i0, ' points a side, ', i0, ' levels')") &
        nas_classes(run%class:run%class), n - 2, levels
    bytes = (size(u, kind=int64) + size(r, kind=int64) + size(v, kind=int64))*storage_size(u, int64)/8
    call app_describe(text, int(bytes, c_long), run%initialisation, int(omp_get_max_threads(), c_int))
  end subroutine
end program
