! The NAS simulated application SP: as BT, but each direction's operator is diagonalised, so that every line of the
! grid has scalar pentadiagonal systems, and the right-hand side changes from one direction's eigenvectors to the
! next one's in between.
!
! Source: RNR-94-007 (see common.f90), section on SP; classes and values as published with the NAS Parallel
! Benchmarks 3.
module sp_solvers
  use nas_flow
  implicit none
  private

  public :: to_eigenvectors, x_solve, y_solve, z_solve

  real(wp), parameter :: half_root = sqrt(0.5_wp)

contains

  pure real(wp) function sound(i, j, k)
    integer, intent(in) :: i, j, k
    sound = sqrt(c1*c2*inverse(i, j, k)*(u(5, i, j, k) - kinetic(i, j, k)))
  end function

  ! The right-hand side in the eigenvectors of the first direction.
  subroutine to_eigenvectors()
    integer :: i, j, k
    real(wp) :: speed, v(3), r(equations), pressure, wave, shear

    !$omp parallel do schedule(static) private(i, j, speed, v, r, pressure, wave, shear)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 1, n - 2
          speed = sound(i, j, k)
          v = velocity(i, j, k, :)
          r = rhs(:, i, j, k)
          pressure = c2/speed**2*(kinetic_mass(i, j, k)*r(1) - sum(v*r(2:4)) + r(5))
          shear = half_root*inverse(i, j, k)*(v(1)*r(1) - r(2))
          wave = half_root*inverse(i, j, k)*speed*pressure
          rhs(1, i, j, k) = r(1) - pressure
          rhs(2, i, j, k) = -inverse(i, j, k)*(v(3)*r(1) - r(4))
          rhs(3, i, j, k) = inverse(i, j, k)*(v(2)*r(1) - r(3))
          rhs(4, i, j, k) = wave - shear
          rhs(5, i, j, k) = wave + shear
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine x_solve()
    integer :: i, j, k
    real(wp) :: speeds(0:n - 1), r(equations)

    !$omp parallel do schedule(static) private(i, j, speeds, r)
    do k = 1, n - 2
      do j = 1, n - 2
        do i = 0, n - 1
          speeds(i) = sound(i, j, k)
        end do
        call solve_line(1, velocity(0:n - 1, j, k, 1), speeds, inverse(0:n - 1, j, k), rhs(:, 0:n - 1, j, k))
      end do
      do j = 1, n - 2
        do i = 1, n - 2 ! to the second direction
          if (.not. keeps_solutions) cycle
          r = rhs(:, i, j, k)
          rhs(1, i, j, k) = -r(2)
          rhs(2, i, j, k) = r(1)
          rhs(3, i, j, k) = half_root*(r(4) - r(5))
          rhs(4, i, j, k) = 0.5_wp*(r(4) + r(5)) - half_root*r(3)
          rhs(5, i, j, k) = 0.5_wp*(r(4) + r(5)) + half_root*r(3)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine y_solve()
    integer :: i, j, k
    real(wp) :: speeds(0:n - 1), r(equations)

    !$omp parallel do schedule(static) private(i, j, speeds, r)
    do k = 1, n - 2
      do i = 1, n - 2
        do j = 0, n - 1
          speeds(j) = sound(i, j, k)
        end do
        call solve_line(2, velocity(i, 0:n - 1, k, 2), speeds, inverse(i, 0:n - 1, k), rhs(:, i, 0:n - 1, k))
      end do
      do j = 1, n - 2
        do i = 1, n - 2 ! to the third direction
          if (.not. keeps_solutions) cycle
          r = rhs(:, i, j, k)
          rhs(1, i, j, k) = half_root*(r(4) - r(5))
          rhs(2, i, j, k) = -r(3)
          rhs(3, i, j, k) = r(2)
          rhs(4, i, j, k) = 0.5_wp*(r(4) + r(5)) - half_root*r(1)
          rhs(5, i, j, k) = 0.5_wp*(r(4) + r(5)) + half_root*r(1)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Lines run across the planes that threads have in the other directions: here a thread has rows of y.
  subroutine z_solve()
    integer :: i, j, k
    real(wp) :: speeds(0:n - 1)

    !$omp parallel do schedule(static) private(i, k, speeds)
    do j = 1, n - 2
      do i = 1, n - 2
        do k = 0, n - 1
          speeds(k) = sound(i, j, k)
        end do
        call solve_line(3, velocity(i, j, 0:n - 1, 3), speeds, inverse(i, j, 0:n - 1), rhs(:, i, j, 0:n - 1))
        do k = 1, n - 2
          if (keeps_solutions) call from_eigenvectors(i, j, k, speeds(k))
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! From the eigenvectors of the third direction back to the equations.
  subroutine from_eigenvectors(i, j, k, speed)
    integer, intent(in) :: i, j, k
    real(wp), intent(in) :: speed
    real(wp) :: v(3), r(equations), density, waves, mass, momentum

    v = velocity(i, j, k, :)
    r = rhs(:, i, j, k)
    density = u(1, i, j, k)
    waves = half_root*density/speed*(r(4) + r(5))
    mass = r(3) + waves
    momentum = half_root*density*(r(4) - r(5))
    rhs(1, i, j, k) = mass
    rhs(2, i, j, k) = v(1)*mass - density*r(2)
    rhs(3, i, j, k) = v(2)*mass + density*r(1)
    rhs(4, i, j, k) = v(3)*mass + momentum
    rhs(5, i, j, k) = density*(v(2)*r(1) - v(1)*r(2)) + kinetic_mass(i, j, k)*mass + speed**2/c2*waves + v(3)*momentum
  end subroutine

  ! Three pentadiagonal systems along a line: of the flow's own speed (three right-hand sides), and of the speeds of
  ! waves that run with it and against it.
  subroutine solve_line(d, flow, speeds, over, right)
    integer, intent(in) :: d
    real(wp), intent(in) :: flow(0:n - 1), speeds(0:n - 1), over(0:n - 1)
    real(wp), intent(inout) :: right(equations, 0:n - 1)
    real(wp) :: found(equations, 0:n - 1), bands(-2:2, 0:n - 1), waves(-2:2, 0:n - 1), damping(0:n - 1), central, second, fourth
    integer :: i

    found = right
    central = dt*0.5_wp/spacing
    second = dt/spacing**2
    fourth = dt*dissipation
    do i = 0, n - 1
      damping(i) = diffusion(d) + max(along*viscosity*over(i), conduction*viscosity*over(i), viscosity*over(i), 0.0_wp)
    end do
    bands = 0
    bands(0, 0) = 1
    bands(0, n - 1) = 1
    do i = 1, n - 2
      bands(-1, i) = -central*flow(i - 1) - second*damping(i - 1)
      bands(0, i) = 1 + 2*second*damping(i)
      bands(1, i) = central*flow(i + 1) - second*damping(i + 1)
      bands(0, i) = bands(0, i) + merge(5, 6, i == 1 .or. i == n - 2)*fourth
      if (i > 1) bands(-1, i) = bands(-1, i) - 4*fourth
      if (i < n - 2) bands(1, i) = bands(1, i) - 4*fourth
      if (i > 2) bands(-2, i) = fourth
      if (i < n - 3) bands(2, i) = fourth
    end do
    waves = bands
    call solve_bands(waves, right(1:3, :))
    waves = bands
    do i = 1, n - 2
      waves(-1, i) = bands(-1, i) - central*speeds(i - 1)
      waves(1, i) = bands(1, i) + central*speeds(i + 1)
    end do
    call solve_bands(waves, right(4:4, :))
    waves = bands
    do i = 1, n - 2
      waves(-1, i) = bands(-1, i) + central*speeds(i - 1)
      waves(1, i) = bands(1, i) - central*speeds(i + 1)
    end do
    call solve_bands(waves, right(5:5, :))
    if (.not. keeps_solutions) right = found
  end subroutine

  ! Gaussian elimination of a pentadiagonal system.
  subroutine solve_bands(bands, right)
    real(wp), intent(inout) :: bands(-2:2, 0:n - 1), right(:, 0:)
    real(wp) :: pivot, factor
    integer :: i, below

    do i = 0, n - 1
      pivot = 1/bands(0, i)
      bands(1:2, i) = bands(1:2, i)*pivot
      right(:, i) = right(:, i)*pivot
      do below = 1, min(2, n - 1 - i)
        factor = bands(-below, i + below)
        bands(1 - below:2 - below, i + below) = bands(1 - below:2 - below, i + below) - factor*bands(1:2, i)
        right(:, i + below) = right(:, i + below) - factor*right(:, i)
      end do
    end do
    right(:, n - 2) = right(:, n - 2) - bands(1, n - 2)*right(:, n - 1)
    do i = n - 3, 0, -1
      right(:, i) = right(:, i) - bands(1, i)*right(:, i + 1) - bands(2, i)*right(:, i + 2)
    end do
  end subroutine
end module

program sp
  use, intrinsic :: iso_c_binding, only: c_long
  use app
  use nas_flow
  use nas_flow_run
  use sp_solvers
  implicit none

  type(flow_published), parameter :: published = flow_published( &
      points=[12, 36, 64, 102], steps=[100, 400, 400, 400], &
      time_step=[0.015_wp, 0.0015_wp, 0.0015_wp, 0.001_wp], &
      residual=reshape([ &
      0.02747031545133948_wp, 0.010360746705285417_wp, 0.016235745065095532_wp, &
      0.015840557224455615_wp, 0.03484904060936246_wp, &
      0.001893253733584_wp, 0.0001717075447775_wp, 0.0002778153350936_wp, &
      0.0002887475409984_wp, 0.003143611161242_wp, &
      2.4799822399300195_wp, 1.1276337964368832_wp, 1.5028977888770492_wp, &
      1.421781621169518_wp, 2.129211303513828_wp, &
      69.03293579998_wp, 30.95134488084_wp, 41.03336647017_wp, &
      38.64769009604_wp, 56.43482272596_wp], [equations, 4]), &
      error=reshape([ &
      2.7289258557377225e-5_wp, 1.0364446640837285e-5_wp, 1.615479828716647e-5_wp, &
      1.57507049944801e-5_wp, 3.417766618339053e-5_wp, &
      7.542088599534e-5_wp, 6.512852253086e-6_wp, 1.049092285688e-5_wp, &
      1.128838671535e-5_wp, 0.0001212845639773_wp, &
      0.0001090014029782055_wp, 3.734395176928209e-5_wp, 5.009278540654163e-5_wp, &
      4.767109393952825e-5_wp, 0.00013621613399213_wp, &
      0.009810006190188_wp, 0.00102282790567_wp, 0.001720597911692_wp, &
      0.001694479428231_wp, 0.01847456263981_wp], [equations, 4]))

  type(flow_run) :: flow
  integer(c_long) :: step, pass

  flow = flow_begin("sp", published)
  do step = 1, flow%steps
    call app_iteration_begin()
    call compute_rhs()
    call to_eigenvectors()
    do pass = 1, flow%work
      keeps_solutions = pass == flow%work
      call x_solve()
    end do
    do pass = 1, flow%work
      keeps_solutions = pass == flow%work
      call y_solve()
    end do
    call app_phase_begins(step)
    do pass = 1, flow%work
      keeps_solutions = pass == flow%work
      call z_solve()
    end do
    call app_phase_ends(step)
    do pass = 1, flow%work
      call add(1.0_wp/flow%work)
    end do
    call app_upmlib_iteration_ends(step)
    call app_iteration_end()
  end do
  call flow_end(flow, published)
end program
