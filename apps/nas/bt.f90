! The NAS simulated application BT: each time step factors the implicit operator into three directions, along each
! of which there is a block tridiagonal system of 5 x 5 blocks on every line of the grid.
!
! Source: RNR-94-007 (see common.f90), section on BT; classes and values as published with the NAS Parallel
! Benchmarks 3.
module bt_solvers
  use nas_flow
  implicit none
  private

  public :: x_solve, y_solve, z_solve

contains

  subroutine x_solve()
    integer :: j, k

    !$omp parallel do schedule(static) private(j)
    do k = 1, n - 2
      do j = 1, n - 2
        call solve_line(1, u(:, 0:n - 1, j, k), rhs(:, 0:n - 1, j, k))
      end do
    end do
    !$omp end parallel do
  end subroutine

  subroutine y_solve()
    integer :: i, k

    !$omp parallel do schedule(static) private(i)
    do k = 1, n - 2
      do i = 1, n - 2
        call solve_line(2, u(:, i, 0:n - 1, k), rhs(:, i, 0:n - 1, k))
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Lines run across the planes that threads have in the other directions: here a thread has rows of y.
  subroutine z_solve()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, n - 2
      do i = 1, n - 2
        call solve_line(3, u(:, i, j, 0:n - 1), rhs(:, i, j, 0:n - 1))
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Block elimination along a line of direction d. Nothing changes at its ends.
  subroutine solve_line(d, state, right)
    integer, intent(in) :: d
    real(wp), intent(in) :: state(equations, 0:n - 1)
    real(wp), intent(inout) :: right(equations, 0:n - 1)
    real(wp) :: upper(equations, equations, 0:n - 1), found(equations, 0:n - 1)
    real(wp), dimension(equations, equations) :: convective_behind, convective, convective_ahead
    real(wp), dimension(equations, equations) :: viscous_behind, viscous, viscous_ahead, lower, middle
    real(wp) :: central, second
    integer :: i, m

    found = right
    central = dt*0.5_wp/spacing
    second = dt/spacing**2
    upper(:, :, 0) = 0
    call jacobians(d, state(:, 0), convective_behind, viscous_behind)
    call jacobians(d, state(:, 1), convective, viscous)
    do i = 1, n - 2
      call jacobians(d, state(:, i + 1), convective_ahead, viscous_ahead)
      lower = -central*convective_behind - second*viscous_behind
      middle = 2*second*viscous
      upper(:, :, i) = central*convective_ahead - second*viscous_ahead
      do m = 1, equations
        lower(m, m) = lower(m, m) - second*diffusion(d)
        middle(m, m) = middle(m, m) + 1 + 2*second*diffusion(d)
        upper(m, m, i) = upper(m, m, i) - second*diffusion(d)
      end do
      middle = middle - product_of(lower, upper(:, :, i - 1))
      do m = 1, equations
        right(:, i) = right(:, i) - lower(:, m)*right(m, i - 1)
      end do
      call eliminate(middle, upper(:, :, i), right(:, i))
      convective_behind = convective
      convective = convective_ahead
      viscous_behind = viscous
      viscous = viscous_ahead
    end do
    do i = n - 2, 1, -1
      do m = 1, equations
        right(:, i) = right(:, i) - upper(:, m, i)*right(m, i + 1)
      end do
    end do
    if (.not. keeps_solutions) right = found
  end subroutine

  pure function product_of(a, b) result(c)
    real(wp), dimension(equations, equations), intent(in) :: a, b
    real(wp) :: c(equations, equations)
    integer :: column, m

    c = 0
    do column = 1, equations
      do m = 1, equations
        c(:, column) = c(:, column) + a(:, m)*b(m, column)
      end do
    end do
  end function

  ! block = middle^-1 block, and the same of a vector: without pivoting, as middle is near the identity.
  pure subroutine eliminate(middle, block, vector)
    real(wp), intent(inout) :: middle(equations, equations), block(equations, equations), vector(equations)
    real(wp) :: pivot, factor
    integer :: m, other

    do m = 1, equations
      pivot = 1/middle(m, m)
      middle(m, m + 1:) = middle(m, m + 1:)*pivot
      block(m, :) = block(m, :)*pivot
      vector(m) = vector(m)*pivot
      do other = 1, equations
        if (other == m) cycle
        factor = middle(other, m)
        middle(other, m + 1:) = middle(other, m + 1:) - factor*middle(m, m + 1:)
        block(other, :) = block(other, :) - factor*block(m, :)
        vector(other) = vector(other) - factor*vector(m)
      end do
    end do
  end subroutine

  ! Derivatives of the convective and of the viscous flux along direction d by the state.
  pure subroutine jacobians(d, state, convective, viscous)
    integer, intent(in) :: d
    real(wp), intent(in) :: state(equations)
    real(wp), dimension(equations, equations), intent(out) :: convective, viscous
    real(wp) :: over, v(3), kinetic, energy
    integer :: m

    over = 1/state(1)
    v = state(2:4)*over
    kinetic = 0.5_wp*sum(v*v)
    energy = state(5)*over

    convective = 0
    convective(1, 1 + d) = 1
    convective(2:4, 1) = -v*v(d)
    convective(2:4, 1 + d) = v
    do m = 1, 3
      convective(1 + m, 1 + m) = convective(1 + m, 1 + m) + v(d)
      convective(1 + d, 1 + m) = convective(1 + d, 1 + m) - c2*v(m)
    end do
    convective(1 + d, 1) = convective(1 + d, 1) + c2*kinetic
    convective(1 + d, 5) = c2
    convective(5, 1) = (2*c2*kinetic - c1*energy)*v(d)
    convective(5, 2:4) = -c2*v*v(d)
    convective(5, 1 + d) = convective(5, 1 + d) + c1*energy - c2*kinetic
    convective(5, 5) = c1*v(d)

    viscous = 0
    do m = 1, 3
      viscous(1 + m, 1) = -viscosity*v(m)*over
      viscous(1 + m, 1 + m) = viscosity*over
    end do
    viscous(1 + d, :) = along*viscous(1 + d, :)
    viscous(5, 1) = -viscosity*over*(2*energy_all*kinetic + 2*energy_along*v(d)**2 + conduction*energy)
    viscous(5, 2:4) = viscosity*over*energy_all*v
    viscous(5, 1 + d) = viscous(5, 1 + d) + viscosity*over*2*energy_along*v(d)
    viscous(5, 5) = viscosity*over*conduction
  end subroutine
end module

program bt
  use, intrinsic :: iso_c_binding, only: c_long
  use app
  use nas_flow
  use nas_flow_run
  use bt_solvers
  implicit none

  type(flow_published), parameter :: published = flow_published( &
      points=[12, 24, 64, 102], steps=[60, 200, 200, 200], &
      time_step=[0.01_wp, 0.0008_wp, 0.0008_wp, 0.0003_wp], &
      residual=reshape([ &
      0.17034283709541312_wp, 0.012975252070034096_wp, 0.032527926989486054_wp, &
      0.0264364212751668_wp, 0.1921178413174443_wp, &
      112.5590409344_wp, 11.80007595731_wp, 27.10329767846_wp, &
      24.69174937669_wp, 263.8427874317_wp, &
      108.06346714637264_wp, 11.319730901220813_wp, 25.974354511582465_wp, &
      23.66562254467891_wp, 252.78963211748345_wp, &
      1423.3597229287254_wp, 99.33052259015024_wp, 356.46025644535285_wp, &
      324.8544795908409_wp, 3270.7541254659363_wp], [equations, 4]), &
      error=reshape([ &
      0.0004997691334581158_wp, 4.519566678296193e-5_wp, 7.397376517292135e-5_wp, &
      7.382123863243973e-5_wp, 0.0008926963098749145_wp, &
      4.419655736008_wp, 0.4638531260002_wp, 1.011551749967_wp, &
      0.9235878729944_wp, 10.18045837718_wp, &
      4.2348416040525025_wp, 0.443902824969957_wp, 0.9669248013634565_wp, &
      0.8830206303976548_wp, 9.737990177082928_wp, &
      52.96984714093686_wp, 4.463289611567067_wp, 13.122573342210174_wp, &
      12.006925323559145_wp, 124.59576151035986_wp], [equations, 4]))

  type(flow_run) :: flow
  integer(c_long) :: step, pass

  flow = flow_begin("bt", published)
  do step = 1, flow%steps
    call app_iteration_begin()
    call compute_rhs()
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
