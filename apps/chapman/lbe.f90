! A nine-velocity lattice Boltzmann code (Chapman, Patil, Prabhakar 2001, program 3): plain OpenMP, with the
! directives that `homing translate` reads. Each point pushes what it collided into its neighbours, so a thread
! writes into rows of others.
!
! The flow between two walls (below row 1, above row ny) that a constant force starts from rest, periodic in x.
! Walls reflect halfway between two points; with the relaxation time used here they do so exactly. The mean
! velocity of each row is checked against the series of the start-up flow, and the mass against the beginning's.
! A wave of the density along x, whose mean is zero, makes the columns differ.
!
! Populations: 0 rests; 1 to 4 move by (1,0), (0,1), (-1,0), (0,-1); 5 to 8 by (1,1), (-1,1), (-1,-1), (1,-1).
module lbe_kernels
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  public :: start, calculate_ux_uy_p, collision_advection_interior, collision_advection_boundary

  real(real64), parameter :: w0 = 4.0_real64/9, w1 = 1.0_real64/9, w2 = 1.0_real64/36
  ! At (tau - 1/2)^2 = 3/16 the walls lie exactly halfway (the viscosity is (tau - 1/2)/3).
  real(real64), parameter, public :: tau = 0.9330127018922193_real64
  real(real64), parameter :: omega = 1/tau
  real(real64), parameter :: pi = 3.14159265358979323846_real64

contains

  ! First touch. Column 0 and nx + 1 take what leaves at the sides, rows 0 and ny + 1 what hits the walls.
  subroutine start(nx, ny, f, fold, ux, uy, p, wave)
    integer, intent(in) :: nx, ny
    real(real64), intent(out) :: f(0:nx + 1, 0:8, 0:ny + 1), fold(0:nx + 1, 0:8, 0:ny + 1)
    real(real64), intent(out) :: ux(nx, ny), uy(nx, ny), p(nx, ny)
    real(real64), intent(in) :: wave
    integer :: i, j, q
    real(real64) :: rho, w

    !$omp do schedule(static)
    !$homing on home(f(:, :, j))
    do j = 0, ny + 1
      do q = 0, 8
        w = w2
        if (q == 0) w = w0
        if (q >= 1 .and. q <= 4) w = w1
        do i = 0, nx + 1
          rho = 1 + wave*cos(2*pi*real(i, real64)/real(nx, real64))
          f(i, q, j) = w*rho
          fold(i, q, j) = w*rho
        end do
      end do
    end do
    !$omp end do
    !$omp do schedule(static)
    !$homing on home(p(:, j))
    do j = 1, ny
      do i = 1, nx
        ux(i, j) = 0
        uy(i, j) = 0
        p(i, j) = 0
      end do
    end do
    !$omp end do
  end subroutine

  ! Half of the force's impulse counts for the velocity of the moment.
  subroutine calculate_ux_uy_p(nx, ny, force, fold, ux, uy, p)
    integer, intent(in) :: nx, ny
    real(real64), intent(in) :: force, fold(0:nx + 1, 0:8, 0:ny + 1)
    real(real64), intent(inout) :: ux(nx, ny), uy(nx, ny), p(nx, ny)
    integer :: i, j
    real(real64) :: rho

    !$omp do schedule(static)
    !$homing on home(p(:, j))
    do j = 1, ny
      do i = 1, nx
        rho = fold(i, 0, j) + fold(i, 1, j) + fold(i, 2, j) + fold(i, 3, j) + fold(i, 4, j) &
            + fold(i, 5, j) + fold(i, 6, j) + fold(i, 7, j) + fold(i, 8, j)
        ux(i, j) = (fold(i, 1, j) - fold(i, 3, j) + fold(i, 5, j) - fold(i, 6, j) &
            - fold(i, 7, j) + fold(i, 8, j) + 0.5_real64*force)/rho
        uy(i, j) = (fold(i, 2, j) - fold(i, 4, j) + fold(i, 5, j) + fold(i, 6, j) &
            - fold(i, 7, j) - fold(i, 8, j))/rho
        p(i, j) = rho/3
      end do
    end do
    !$omp end do
  end subroutine

  subroutine collision_advection_interior(nx, ny, force, f, fold, ux, uy, p)
    integer, intent(in) :: nx, ny
    real(real64), intent(in) :: force
    real(real64), intent(inout) :: f(0:nx + 1, 0:8, 0:ny + 1)
    real(real64), intent(in) :: fold(0:nx + 1, 0:8, 0:ny + 1), ux(nx, ny), uy(nx, ny), p(nx, ny)
    integer :: i, j
    real(real64) :: rho, u, v, uu, push

    push = 3*(1 - 0.5_real64*omega)*force
    !$omp do schedule(static)
    !$homing on home(f(:, :, j))
    do j = 1, ny
      do i = 1, nx
        rho = 3*p(i, j)
        u = ux(i, j)
        v = uy(i, j)
        uu = 1.5_real64*(u*u + v*v)
        f(i, 0, j) = fold(i, 0, j) - omega*(fold(i, 0, j) - w0*rho*(1 - uu)) - w0*push*u
        f(i + 1, 1, j) = fold(i, 1, j) - omega*(fold(i, 1, j) - w1*rho*(1 + 3*u + 4.5_real64*u*u - uu)) &
            + w1*push*(1 + 2*u)
        f(i, 2, j + 1) = fold(i, 2, j) - omega*(fold(i, 2, j) - w1*rho*(1 + 3*v + 4.5_real64*v*v - uu)) &
            - w1*push*u
        f(i - 1, 3, j) = fold(i, 3, j) - omega*(fold(i, 3, j) - w1*rho*(1 - 3*u + 4.5_real64*u*u - uu)) &
            + w1*push*(2*u - 1)
        f(i, 4, j - 1) = fold(i, 4, j) - omega*(fold(i, 4, j) - w1*rho*(1 - 3*v + 4.5_real64*v*v - uu)) &
            - w1*push*u
        f(i + 1, 5, j + 1) = fold(i, 5, j) &
            - omega*(fold(i, 5, j) - w2*rho*(1 + 3*(u + v) + 4.5_real64*(u + v)*(u + v) - uu)) &
            + w2*push*(1 + 2*u + 3*v)
        f(i - 1, 6, j + 1) = fold(i, 6, j) &
            - omega*(fold(i, 6, j) - w2*rho*(1 + 3*(v - u) + 4.5_real64*(v - u)*(v - u) - uu)) &
            + w2*push*(2*u - 1 - 3*v)
        f(i - 1, 7, j - 1) = fold(i, 7, j) &
            - omega*(fold(i, 7, j) - w2*rho*(1 - 3*(u + v) + 4.5_real64*(u + v)*(u + v) - uu)) &
            + w2*push*(2*u - 1 + 3*v)
        f(i + 1, 8, j - 1) = fold(i, 8, j) &
            - omega*(fold(i, 8, j) - w2*rho*(1 + 3*(u - v) + 4.5_real64*(u - v)*(u - v) - uu)) &
            + w2*push*(1 + 2*u - 3*v)
      end do
    end do
    !$omp end do
  end subroutine

  ! What left at a side comes in at the other; what hit a wall goes back to where it came from.
  subroutine collision_advection_boundary(nx, ny, f)
    integer, intent(in) :: nx, ny
    real(real64), intent(inout) :: f(0:nx + 1, 0:8, 0:ny + 1)
    integer :: i, j

    !$omp do schedule(static)
    !$homing on home(f(:, :, j))
    do j = 1, ny
      f(1, 1, j) = f(nx + 1, 1, j)
      f(nx, 3, j) = f(0, 3, j)
      f(1, 5, j) = f(nx + 1, 5, j)
      f(nx, 6, j) = f(0, 6, j)
      f(nx, 7, j) = f(0, 7, j)
      f(1, 8, j) = f(nx + 1, 8, j)
    end do
    !$omp end do
    !$omp single
    do i = 1, nx
      f(i, 2, 1) = f(i, 4, 0)
      f(i, 5, 1) = f(i - 1, 7, 0)
      f(i, 6, 1) = f(i + 1, 8, 0)
    end do
    !$omp end single
    !$omp single
    do i = 1, nx
      f(i, 4, ny) = f(i, 2, ny + 1)
      f(i, 7, ny) = f(i + 1, 5, ny + 1)
      f(i, 8, ny) = f(i - 1, 6, ny + 1)
    end do
    !$omp end single
  end subroutine
end module

program lbe
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use, intrinsic :: iso_fortran_env, only: real64
  use omp_lib, only: omp_get_max_threads
  use app
  use lbe_kernels
  implicit none

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  real(real64), parameter :: wave = 1e-3_real64
  ! Of the root mean square of the velocity, compared with the series': molecules take a few steps to become a
  ! fluid.
  real(real64), parameter :: tolerance = 0.002_real64, tolerance_first_step = 0.1_real64
  real(real64), parameter :: tolerance_mass = 1e-11_real64

  integer :: nx, ny, iterations, steps, i, j, k, m, status
  integer(c_int) :: initialisation
  real(real64) :: force, viscosity, time, series, y, mass, difference, norm, momentum, tolerated
  real(real64), allocatable :: f(:, :, :), fold(:, :, :), ux(:, :), uy(:, :), p(:, :)
  real(real64), allocatable :: row_mass(:), row_velocity(:), row_momentum(:)
  character(64) :: size_text
  !$homing distribute f(*, *, block), fold(*, *, block)
  !$homing align ux(i, j) with f(i, *, j)
  !$homing align uy(i, j) with f(i, *, j)
  !$homing align p(i, j) with f(i, *, j)
  !$homing align row_mass(j) with f(*, *, j)
  !$homing align row_velocity(j) with f(*, *, j)
  !$homing align row_momentum(j) with f(*, *, j)
  !$homing shadow f(0, 0, 1)

  call app_begin("chapman_lbe")
  nx = int(app_integer_option("--nx", 256_c_long, 1_c_long, 20000_c_long, "points along the walls, default 256"))
  ny = int(app_integer_option("--ny", 256_c_long, 1_c_long, 20000_c_long, "points between them, default 256"))
  iterations = int(app_integer_option("--iterations", 10_c_long, 1_c_long, 1000000_c_long, "default 10"))
  steps = int(app_integer_option("--steps", 10_c_long, 1_c_long, 1000000_c_long, &
      "time steps an iteration, default 10"))
  initialisation = app_initialise_option()
  call app_options_end()

  allocate (f(0:nx + 1, 0:8, 0:ny + 1), fold(0:nx + 1, 0:8, 0:ny + 1), stat=status)
  if (status /= 0) call app_error("not enough memory for the populations")
  allocate (ux(nx, ny), uy(nx, ny), p(nx, ny), stat=status)
  if (status /= 0) call app_error("not enough memory for velocity and pressure")
  allocate (row_mass(ny), row_velocity(ny), row_momentum(ny))

  ! The largest velocity will be 0.05 in the middle.
  viscosity = (tau - 0.5_real64)/3
  force = 8*viscosity*0.05_real64/real(ny, real64)**2
  !$omp parallel if (initialisation == app_parallel)
  call start(nx, ny, f, fold, ux, uy, p, wave)
  !$omp end parallel

  write (size_text, '(i0, " x ", i0, " points")') nx, ny
  call app_describe(size_text, 8_c_long*(18_c_long*int(nx + 2, c_long)*int(ny + 2, c_long) &
      + 3_c_long*int(nx, c_long)*int(ny, c_long)), initialisation, int(omp_get_max_threads(), c_int))
  call app_iterations_begin(int(iterations, c_long))
  do m = 1, iterations
    call app_iteration_begin()
    !$omp parallel private(i, j, k)
    do k = 1, steps
      call calculate_ux_uy_p(nx, ny, force, fold, ux, uy, p)
      call collision_advection_interior(nx, ny, force, f, fold, ux, uy, p)
      call collision_advection_boundary(nx, ny, f)
      !$omp do schedule(static)
      !$homing on home(f(:, :, j))
      do j = 1, ny
        fold(1:nx, :, j) = f(1:nx, :, j)
      end do
      !$omp end do
    end do
    !$omp end parallel
    call app_iteration_end()
  end do
  call app_iterations_end()

  !$omp parallel
  call calculate_ux_uy_p(nx, ny, force, fold, ux, uy, p)
  !$omp end parallel
  ! Per row, added up in the order of the rows, so that the digits are those of one thread.
  !$omp parallel do private(i) schedule(static)
  !$homing on home(p(:, j))
  do j = 1, ny
    row_mass(j) = 0
    row_velocity(j) = 0
    row_momentum(j) = 0
    do i = 1, nx
      row_mass(j) = row_mass(j) + 3*p(i, j)
      row_velocity(j) = row_velocity(j) + ux(i, j)/real(nx, real64)
      row_momentum(j) = row_momentum(j) + 3*p(i, j)*uy(i, j)
    end do
  end do
  !$omp end parallel do

  ! Starting populations are those of rest, so that the velocity is half a step ahead.
  time = real(iterations, real64)*real(steps, real64) + 0.5_real64
  mass = 0
  momentum = 0
  difference = 0
  norm = 0
  do j = 1, ny
    mass = mass + row_mass(j)
    momentum = momentum + row_momentum(j)
    y = (real(j, real64) - 0.5_real64)/real(ny, real64)
    series = 0.2_real64*y*(1 - y)
    do k = 1, 199, 2
      series = series - 1.6_real64/(pi*real(k, real64))**3*sin(real(k, real64)*pi*y) &
          *exp(-viscosity*time*(pi*real(k, real64)/real(ny, real64))**2)
    end do
    difference = difference + (row_velocity(j) - series)**2
    norm = norm + series**2
  end do
  difference = sqrt(difference/norm)
  call app_result("mass", mass)
  call app_result("momentum across", momentum)
  call app_result("velocity", sum(row_velocity)/real(ny, real64))
  call app_result("difference from the series", difference)
  tolerated = tolerance + tolerance_first_step/(real(iterations, real64)*real(steps, real64))
  call app_result("tolerated difference", tolerated)
  ! The wave has no mean, but with one column it is a constant.
  mass = mass/(real(nx, real64)*real(ny, real64)) - merge(1 + wave, 1.0_real64, nx == 1)
  call app_finish(merge(app_successful, app_failed, difference <= tolerated .and. abs(mass) <= tolerance_mass))
end program
