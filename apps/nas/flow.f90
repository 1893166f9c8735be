! What BT and SP share: the compressible Navier-Stokes equations on a cube, whose right-hand side both compute
! alike, the exact solution that is put into them, and the norms by which a run is verified.
!
! Source: RNR-94-007 (see common.f90), simulated CFD applications: the equations, the constants of the fluid,
! the boundary and initial values and the dissipation are those of its section 3.
module nas_flow
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  integer, parameter, public :: wp = real64, equations = 5

  ! Of the fluid: ratio of specific heats, and what follows from it and from the Prandtl number.
  real(wp), parameter, public :: c1 = 1.4_wp, c2 = 0.4_wp, viscosity = 0.1_wp, conduction = c1*c1
  ! Along a momentum's own direction viscosity counts 4/3; kinetic energy counts by the other two.
  real(wp), parameter, public :: along = 4.0_wp/3, energy_all = 1 - conduction, energy_along = 1.0_wp/6
  ! Artificial diffusion of each equation, by direction, and the fourth-order dissipation.
  real(wp), parameter, public :: diffusion(3) = [0.75_wp, 0.75_wp, 1.0_wp]
  real(wp), parameter, public :: dissipation = 0.25_wp*1.0_wp

  ! Coefficients of the exact solution: for each equation 1, then x, y, z, their squares, third and fourth powers.
  real(wp), parameter :: exact_coefficients(equations, 13) = reshape([ &
      2.0_wp, 1.0_wp, 2.0_wp, 2.0_wp, 5.0_wp, 0.0_wp, 0.0_wp, 2.0_wp, 2.0_wp, 4.0_wp, &
      0.0_wp, 0.0_wp, 0.0_wp, 0.0_wp, 3.0_wp, 4.0_wp, 0.0_wp, 0.0_wp, 0.0_wp, 2.0_wp, &
      5.0_wp, 1.0_wp, 0.0_wp, 0.0_wp, 0.1_wp, 3.0_wp, 2.0_wp, 2.0_wp, 2.0_wp, 0.4_wp, &
      0.5_wp, 3.0_wp, 3.0_wp, 3.0_wp, 0.3_wp, 0.02_wp, 0.01_wp, 0.04_wp, 0.03_wp, 0.05_wp, &
      0.01_wp, 0.03_wp, 0.03_wp, 0.05_wp, 0.04_wp, 0.03_wp, 0.02_wp, 0.05_wp, 0.04_wp, 0.03_wp, &
      0.5_wp, 0.4_wp, 0.3_wp, 0.2_wp, 0.1_wp, 0.4_wp, 0.3_wp, 0.5_wp, 0.1_wp, 0.3_wp, &
      0.3_wp, 0.5_wp, 0.4_wp, 0.3_wp, 0.2_wp], [equations, 13])

  ! The shared arrays. u: density, momenta, energy; the others are made of it at each step: the momenta over the
  ! density, its inverse, kinetic energy per volume and per mass.
  real(wp), allocatable, public :: u(:, :, :, :), rhs(:, :, :, :), forcing(:, :, :, :)
  real(wp), allocatable, public :: velocity(:, :, :, :), inverse(:, :, :), kinetic(:, :, :), kinetic_mass(:, :, :)

  integer, public :: n = 0              ! points along an edge, numbered from 0
  real(wp), public :: spacing, dt
  ! Do solvers leave their solutions in rhs? Else what was there, by as many accesses.
  logical, public :: keeps_solutions = .true.

  public :: make_fields, start_values, make_forcing, compute_rhs, error_norm, residual_norm, add

contains

  ! Edges are of odd length, so that planes do not fall on one another in a cache.
  subroutine make_fields(points, time_step, parallel)
    integer, intent(in) :: points
    real(wp), intent(in) :: time_step
    logical, intent(in) :: parallel
    integer :: k, edge

    n = points
    dt = time_step
    spacing = 1.0_wp/(n - 1)
    edge = n/2*2
    allocate (u(equations, 0:edge, 0:edge, 0:n - 1), rhs(equations, 0:edge, 0:edge, 0:n - 1))
    allocate (forcing(equations, 0:edge, 0:edge, 0:n - 1), velocity(0:edge, 0:edge, 0:n - 1, 3))
    allocate (inverse(0:edge, 0:edge, 0:n - 1), kinetic(0:edge, 0:edge, 0:n - 1), kinetic_mass(0:edge, 0:edge, 0:n - 1))
    if (parallel) then
      !$omp parallel do schedule(static)
      do k = 0, n - 1
        call touch(k)
      end do
      !$omp end parallel do
    else
      do k = 0, n - 1
        call touch(k)
      end do
    end if
  end subroutine

  subroutine touch(k)
    integer, intent(in) :: k
    u(:, :, :, k) = 1
    rhs(:, :, :, k) = 0
    forcing(:, :, :, k) = 0
    velocity(:, :, k, :) = 0
    inverse(:, :, k) = 1
    kinetic(:, :, k) = 0
    kinetic_mass(:, :, k) = 0
  end subroutine

  pure function exact(x, y, z) result(values)
    real(wp), intent(in) :: x, y, z
    real(wp) :: values(equations)

    associate (c => exact_coefficients)
      values = c(:, 1) + x*(c(:, 2) + x*(c(:, 5) + x*(c(:, 8) + x*c(:, 11)))) &
          + y*(c(:, 3) + y*(c(:, 6) + y*(c(:, 9) + y*c(:, 12)))) &
          + z*(c(:, 4) + z*(c(:, 7) + z*(c(:, 10) + z*c(:, 13))))
    end associate
  end function

  pure function exact_at(i, j, k) result(values)
    integer, intent(in) :: i, j, k
    real(wp) :: values(equations)
    values = exact(i*spacing, j*spacing, k*spacing)
  end function

  ! Between the exact values on opposite faces: a blend of the three directions. On the faces it is exact.
  pure function blended(i, j, k) result(values)
    integer, intent(in) :: i, j, k
    real(wp) :: values(equations), x, y, z
    real(wp), dimension(equations) :: p, q, r

    x = i*spacing
    y = j*spacing
    z = k*spacing
    p = x*exact(1.0_wp, y, z) + (1 - x)*exact(0.0_wp, y, z)
    q = y*exact(x, 1.0_wp, z) + (1 - y)*exact(x, 0.0_wp, z)
    r = z*exact(x, y, 1.0_wp) + (1 - z)*exact(x, y, 0.0_wp)
    values = p + q + r - p*q - p*r - q*r + p*q*r
  end function

  pure logical function on_face(i, j, k)
    integer, intent(in) :: i, j, k
    on_face = any([i, j, k] == 0) .or. any([i, j, k] == n - 1)
  end function

  subroutine start_values()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 0, n - 1
      do j = 0, n - 1
        do i = 0, n - 1
          if (on_face(i, j, k)) then
            u(:, i, j, k) = exact_at(i, j, k)
          else
            u(:, i, j, k) = blended(i, j, k)
          end if
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! The forcing that makes the exact solution a steady one: what its fluxes leave over, taken away. Called before
  ! start_values.
  subroutine make_forcing()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 0, n - 1
      do j = 0, n - 1
        do i = 0, n - 1
          u(:, i, j, k) = exact_at(i, j, k)
          forcing(:, i, j, k) = 0
        end do
      end do
    end do
    !$omp end parallel do
    call compute_rhs()
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 1, n - 2
          forcing(:, i, j, k) = -rhs(:, i, j, k)/dt
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! rhs = dt (forcing - fluxes): central differences, with the dissipation.
  subroutine compute_rhs()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 0, n - 1
      do j = 0, n - 1
        do i = 0, n - 1
          inverse(i, j, k) = 1/u(1, i, j, k)
          velocity(i, j, k, :) = u(2:4, i, j, k)*inverse(i, j, k)
          kinetic(i, j, k) = 0.5_wp*sum(u(2:4, i, j, k)*velocity(i, j, k, :))
          kinetic_mass(i, j, k) = kinetic(i, j, k)*inverse(i, j, k)
          rhs(:, i, j, k) = forcing(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel do

    ! Within a plane of z, each thread reads its own planes only.
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 1, n - 2
          call add_flux(i, j, k, 1, 0, 0, 1)
        end do
      end do
      do j = 1, n - 2
        do i = 1, n - 2
          call add_dissipation(i, j, k, 1, 0, 0, i)
        end do
      end do
      do j = 1, n - 2
        do i = 1, n - 2
          call add_flux(i, j, k, 0, 1, 0, 2)
          call add_dissipation(i, j, k, 0, 1, 0, j)
        end do
      end do
    end do
    !$omp end parallel do

    ! Across planes: the neighbours' too.
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 1, n - 2
          call add_flux(i, j, k, 0, 0, 1, 3)
          call add_dissipation(i, j, k, 0, 0, 1, k)
          rhs(:, i, j, k) = dt*rhs(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Fluxes along direction d, in which (di, dj, dk) is the way to the next point.
  subroutine add_flux(i, j, k, di, dj, dk, d)
    integer, intent(in) :: i, j, k, di, dj, dk, d
    real(wp) :: central, second, viscous
    real(wp), dimension(equations) :: ahead, here, behind
    real(wp) :: v(3), v_ahead(3), v_behind(3), flux(equations)
    real(wp) :: enthalpy_ahead, enthalpy_behind, pressure

    central = 0.5_wp/spacing
    second = 1/spacing**2
    viscous = viscosity*second
    ahead = u(:, i + di, j + dj, k + dk)
    here = u(:, i, j, k)
    behind = u(:, i - di, j - dj, k - dk)
    v_ahead = velocity(i + di, j + dj, k + dk, :)
    v = velocity(i, j, k, :)
    v_behind = velocity(i - di, j - dj, k - dk, :)

    associate (kinetic_ahead => kinetic(i + di, j + dj, k + dk), kinetic_behind => kinetic(i - di, j - dj, k - dk))
      pressure = c2*((ahead(5) - kinetic_ahead) - (behind(5) - kinetic_behind))
      enthalpy_ahead = c1*ahead(5) - c2*kinetic_ahead
      enthalpy_behind = c1*behind(5) - c2*kinetic_behind
    end associate
    flux(1) = ahead(1 + d) - behind(1 + d)
    flux(2:4) = ahead(2:4)*v_ahead(d) - behind(2:4)*v_behind(d)
    flux(1 + d) = flux(1 + d) + pressure
    flux(5) = enthalpy_ahead*v_ahead(d) - enthalpy_behind*v_behind(d)

    rhs(:, i, j, k) = rhs(:, i, j, k) + diffusion(d)*second*(ahead - 2*here + behind) - central*flux
    flux(2:4) = viscous*(v_ahead - 2*v + v_behind)
    flux(1 + d) = along*flux(1 + d)
    rhs(2:4, i, j, k) = rhs(2:4, i, j, k) + flux(2:4)
    rhs(5, i, j, k) = rhs(5, i, j, k) + viscous*( &
        energy_all*(kinetic_mass(i + di, j + dj, k + dk) - 2*kinetic_mass(i, j, k) &
        + kinetic_mass(i - di, j - dj, k - dk)) &
        + energy_along*(v_ahead(d)**2 - 2*v(d)**2 + v_behind(d)**2) &
        + conduction*(ahead(5)*inverse(i + di, j + dj, k + dk) - 2*here(5)*inverse(i, j, k) &
        + behind(5)*inverse(i - di, j - dj, k - dk)))
  end subroutine

  ! Fourth differences; beside a face those that it leaves. `at`: the index along the direction.
  subroutine add_dissipation(i, j, k, di, dj, dk, at)
    integer, intent(in) :: i, j, k, di, dj, dk, at
    real(wp) :: fourth(equations)

    fourth = merge(5.0_wp, 6.0_wp, at == 1 .or. at == n - 2)*u(:, i, j, k)
    if (at > 1) fourth = fourth - 4*u(:, i - di, j - dj, k - dk)
    if (at < n - 2) fourth = fourth - 4*u(:, i + di, j + dj, k + dk)
    if (at > 2) fourth = fourth + u(:, i - 2*di, j - 2*dj, k - 2*dk)
    if (at < n - 3) fourth = fourth + u(:, i + 2*di, j + 2*dj, k + 2*dk)
    rhs(:, i, j, k) = rhs(:, i, j, k) - dissipation*fourth
  end subroutine

  ! u = u + part*rhs
  subroutine add(part)
    real(wp), intent(in) :: part
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 1, n - 2
          u(:, i, j, k) = u(:, i, j, k) + part*rhs(:, i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Root of the mean squares of what u differs from the exact solution.
  function error_norm() result(norm)
    real(wp) :: norm(equations), plane(equations, 0:n - 1)
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 0, n - 1
      plane(:, k) = 0
      do j = 0, n - 1
        do i = 0, n - 1
          plane(:, k) = plane(:, k) + (u(:, i, j, k) - exact_at(i, j, k))**2
        end do
      end do
    end do
    !$omp end parallel do
    norm = sqrt(sum(plane, dim=2)/real(n - 2, wp)**3)
  end function

  ! The same of the right-hand side, without the time step.
  function residual_norm() result(norm)
    real(wp) :: norm(equations), plane(equations, 1:n - 2)
    integer :: i, j, k

    call compute_rhs()
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n - 2
      plane(:, k) = 0
      do j = 1, n - 2
        do i = 1, n - 2
          plane(:, k) = plane(:, k) + rhs(:, i, j, k)**2
        end do
      end do
    end do
    !$omp end parallel do
    norm = sqrt(sum(plane, dim=2)/real(n - 2, wp)**3)/dt
  end function
end module
