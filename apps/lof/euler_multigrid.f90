! The operators of I-MG: a full-approximation multigrid cycle, smoothed by red-black Gauss-Seidel-Newton.
!
! Sources: A. Brandt, "Multi-level adaptive solutions to boundary-value problems", Mathematics of Computation
! 31, 1977, for the scheme; A. Jameson, D. Caughey, "How many steps are required to solve the Euler equations of
! steady, compressible flow", AIAA 2001-2673, for symmetric Gauss-Seidel sweeps as its smoother.
!
! Every loop is a parallel region of its own and deals out planes of a level by schedule(static), so a thread uses
! the same planes of a level everywhere, but for those of its neighbours at the borders. A cell depends on its
! six neighbours, all of the other colour: the order of the cells of a colour makes no difference.
module euler_multigrid
  use, intrinsic :: iso_fortran_env, only: real64
  use euler_flux
  use euler_levels
  implicit none
  private

  public :: cycle_from, residual, norm

  integer, parameter :: coarsest_sweeps = 4
  integer, parameter :: visits = 2 ! of the next coarser level: a W-cycle
  integer, parameter :: red = 0, black = 1
  real(real64), parameter :: least_part = 0.5_real64 ! of density and pressure that one step may leave

contains

  ! One cycle from level l downwards: improves its states for its right side.
  recursive subroutine cycle_from(l)
    integer, intent(in) :: l
    integer :: sweep, visit

    if (l == size(level)) then
      do sweep = 1, coarsest_sweeps
        call symmetric_sweep(level(l))
      end do
      return
    end if
    call symmetric_sweep(level(l))
    call residual(level(l))
    call restrict(level(l), level(l + 1))
    call set_right_side(level(l + 1))
    do visit = 1, visits
      call cycle_from(l + 1)
    end do
    call change(level(l + 1))
    call prolong(level(l + 1), level(l))
    call symmetric_sweep(level(l))
  end subroutine

  ! Forwards red, black; backwards black, red. The black cells' two turns in the middle, with nothing changed
  ! around them, are one.
  subroutine symmetric_sweep(g)
    type(grid_level), intent(inout) :: g

    call newton(g, red)
    call newton(g, black)
    call newton(g, red)
  end subroutine

  ! A step of Newton's method in every cell of a colour, its neighbours as they are.
  subroutine newton(g, colour)
    type(grid_level), intent(inout) :: g
    integer, intent(in) :: colour
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, g%n
      call newton_plane(g%n, k, colour, g%w, g%right, g%area_i, g%area_j, g%area_k)
    end do
    !$omp end parallel do
  end subroutine

  subroutine newton_plane(n, k, colour, w, right, area_i, area_j, area_k)
    integer, intent(in) :: n, k, colour
    real(real64), intent(inout) :: w(unknowns, 0:n + 1, n, n)
    real(real64), intent(in) :: right(unknowns, n, n, n)
    real(real64), intent(in) :: area_i(3, 0:n, n, n), area_j(3, n, 0:n, n), area_k(3, n, n, 0:n)
    real(real64) :: balance(unknowns), jacobian(unknowns, unknowns)
    integer :: i, j

    do j = 1, n
      do i = 1 + mod(j + k + colour, 2), n, 2
        balance = -right(:, i, j, k)
        jacobian = 0
        call outward(w(:, i, j, k), -area_i(:, i - 1, j, k), w(:, i - 1, j, k), .false., balance, jacobian)
        call outward(w(:, i, j, k), area_i(:, i, j, k), w(:, i + 1, j, k), .false., balance, jacobian)
        call outward(w(:, i, j, k), -area_j(:, i, j - 1, k), w(:, i, max(j - 1, 1), k), j == 1, balance, jacobian)
        call outward(w(:, i, j, k), area_j(:, i, j, k), w(:, i, min(j + 1, n), k), j == n, balance, jacobian)
        call outward(w(:, i, j, k), -area_k(:, i, j, k - 1), w(:, i, j, max(k - 1, 1)), k == 1, balance, jacobian)
        call outward(w(:, i, j, k), area_k(:, i, j, k), w(:, i, j, min(k + 1, n)), k == n, balance, jacobian)
        call solve(jacobian, balance)
        call step(w(:, i, j, k), balance)
      end do
    end do
  end subroutine

  ! Adds what leaves a cell through a face less what comes in, and its derivative by the cell's own state.
  pure subroutine outward(own, area, other, wall, balance, jacobian)
    real(real64), intent(in) :: own(unknowns), area(3), other(unknowns)
    logical, intent(in) :: wall
    real(real64), intent(inout) :: balance(unknowns), jacobian(unknowns, unknowns)
    real(real64) :: f(unknowns), d(unknowns, unknowns)
    integer :: column

    call plus_flux_and_jacobian(own, area, f, d)
    if (wall) then
      balance = balance + reflected(f, area)
      do column = 1, unknowns
        jacobian(:, column) = jacobian(:, column) + reflected(d(:, column), area)
      end do
      return
    end if
    jacobian = jacobian + d
    balance = balance + f
    call plus_flux(other, -area, f)
    balance = balance - f
  end subroutine

  ! b = a^-1 b, by elimination. No pivots are looked for: every face adds to the diagonal.
  pure subroutine solve(a, b)
    real(real64), intent(inout) :: a(unknowns, unknowns), b(unknowns)
    real(real64) :: factor
    integer :: k, row

    do k = 1, unknowns - 1
      do row = k + 1, unknowns
        factor = a(row, k)/a(k, k)
        a(row, k + 1:) = a(row, k + 1:) - factor*a(k, k + 1:)
        b(row) = b(row) - factor*b(k)
      end do
    end do
    do k = unknowns, 1, -1
      b(k) = (b(k) - sum(a(k, k + 1:)*b(k + 1:)))/a(k, k)
    end do
  end subroutine

  ! w = w - change, or a part of it where density or pressure would fall too far.
  pure subroutine step(w, change)
    real(real64), intent(inout) :: w(unknowns)
    real(real64), intent(in) :: change(unknowns)
    real(real64) :: next(unknowns), part
    integer :: halving

    part = 1
    do halving = 1, 10
      next = w - part*change
      if (next(1) > least_part*w(1)) then
        if (pressure(next) > least_part*pressure(w)) then
          w = next
          return
        end if
      end if
      part = 0.5_real64*part
    end do
  end subroutine

  ! r = right side - fluxes
  subroutine residual(g)
    type(grid_level), intent(inout) :: g
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, g%n
      g%r(:, :, :, k) = g%right(:, :, :, k)
      call subtract_fluxes(g%n, k, g%w, g%r, g%area_i, g%area_j, g%area_k)
    end do
    !$omp end parallel do
  end subroutine

  ! right side = what the finer level left in r + fluxes, so that the states just restricted would be the
  ! solution if the finer level had no residual.
  subroutine set_right_side(g)
    type(grid_level), intent(inout) :: g
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, g%n
      g%right(:, :, :, k) = 0
      call subtract_fluxes(g%n, k, g%w, g%right, g%area_i, g%area_j, g%area_k)
      g%right(:, :, :, k) = g%r(:, :, :, k) - g%right(:, :, :, k)
    end do
    !$omp end parallel do
  end subroutine

  subroutine subtract_fluxes(n, k, w, r, area_i, area_j, area_k)
    integer, intent(in) :: n, k
    real(real64), intent(in) :: w(unknowns, 0:n + 1, n, n)
    real(real64), intent(inout) :: r(unknowns, n, n, n)
    real(real64), intent(in) :: area_i(3, 0:n, n, n), area_j(3, n, 0:n, n), area_k(3, n, n, 0:n)
    real(real64) :: balance(unknowns)
    integer :: i, j

    do j = 1, n
      do i = 1, n
        balance = 0
        call net(w(:, i, j, k), -area_i(:, i - 1, j, k), w(:, i - 1, j, k), .false., balance)
        call net(w(:, i, j, k), area_i(:, i, j, k), w(:, i + 1, j, k), .false., balance)
        call net(w(:, i, j, k), -area_j(:, i, j - 1, k), w(:, i, max(j - 1, 1), k), j == 1, balance)
        call net(w(:, i, j, k), area_j(:, i, j, k), w(:, i, min(j + 1, n), k), j == n, balance)
        call net(w(:, i, j, k), -area_k(:, i, j, k - 1), w(:, i, j, max(k - 1, 1)), k == 1, balance)
        call net(w(:, i, j, k), area_k(:, i, j, k), w(:, i, j, min(k + 1, n)), k == n, balance)
        r(:, i, j, k) = r(:, i, j, k) - balance
      end do
    end do
  end subroutine

  ! As outward, without the derivative.
  pure subroutine net(own, area, other, wall, balance)
    real(real64), intent(in) :: own(unknowns), area(3), other(unknowns)
    logical, intent(in) :: wall
    real(real64), intent(inout) :: balance(unknowns)
    real(real64) :: f(unknowns)

    call plus_flux(own, area, f)
    if (wall) then
      balance = balance + reflected(f, area)
      return
    end if
    balance = balance + f
    call plus_flux(other, -area, f)
    balance = balance - f
  end subroutine

  ! States by volume, residuals by adding up.
  subroutine restrict(fine, g)
    type(grid_level), intent(in) :: fine
    type(grid_level), intent(inout) :: g
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, g%n
      call restrict_plane(g%n, k, fine%w, fine%r, fine%volume, g%w, g%r, g%first, g%volume)
    end do
    !$omp end parallel do
  end subroutine

  subroutine restrict_plane(n, k, fine, fine_r, fine_volume, w, r, first, volume)
    integer, intent(in) :: n, k
    real(real64), intent(in) :: fine(unknowns, 0:2*n + 1, 2*n, 2*n), fine_r(unknowns, 2*n, 2*n, 2*n)
    real(real64), intent(in) :: fine_volume(2*n, 2*n, 2*n), volume(n, n, n)
    real(real64), intent(inout) :: w(unknowns, 0:n + 1, n, n), r(unknowns, n, n, n), first(unknowns, n, n, n)
    real(real64) :: state(unknowns), total(unknowns)
    integer :: i, j, i2, j2, k2

    do j = 1, n
      do i = 1, n
        state = 0
        total = 0
        do k2 = 2*k - 1, 2*k
          do j2 = 2*j - 1, 2*j
            do i2 = 2*i - 1, 2*i
              state = state + fine_volume(i2, j2, k2)*fine(:, i2, j2, k2)
              total = total + fine_r(:, i2, j2, k2)
            end do
          end do
        end do
        w(:, i, j, k) = state/volume(i, j, k)
        first(:, i, j, k) = w(:, i, j, k)
        r(:, i, j, k) = total
      end do
    end do
  end subroutine

  ! first = w - first
  subroutine change(g)
    type(grid_level), intent(inout) :: g
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, g%n
      g%first(:, :, :, k) = g%w(:, 1:g%n, :, k) - g%first(:, :, :, k)
    end do
    !$omp end parallel do
  end subroutine

  ! Adds the coarse level's change, linear between the middles of its cells and constant beyond.
  subroutine prolong(g, fine)
    type(grid_level), intent(in) :: g
    type(grid_level), intent(inout) :: fine
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, fine%n
      call prolong_plane(g%n, k, g%first, fine%w)
    end do
    !$omp end parallel do
  end subroutine

  subroutine prolong_plane(n, k, changed, fine)
    integer, intent(in) :: n, k
    real(real64), intent(in) :: changed(unknowns, n, n, n)
    real(real64), intent(inout) :: fine(unknowns, 0:2*n + 1, 2*n, 2*n)
    real(real64) :: add(unknowns)
    integer :: i, j, near(3), far(3)

    near(3) = cell_around(k)
    far(3) = neighbour(k, n)
    do j = 1, 2*n
      near(2) = cell_around(j)
      far(2) = neighbour(j, n)
      do i = 1, 2*n
        near(1) = cell_around(i)
        far(1) = neighbour(i, n)
        add = 27*changed(:, near(1), near(2), near(3)) + changed(:, far(1), far(2), far(3)) &
            + 9*(changed(:, far(1), near(2), near(3)) + changed(:, near(1), far(2), near(3)) &
            + changed(:, near(1), near(2), far(3))) &
            + 3*(changed(:, far(1), far(2), near(3)) + changed(:, far(1), near(2), far(3)) &
            + changed(:, near(1), far(2), far(3)))
        call step(fine(:, i, j, k), -add/64)
      end do
    end do
  end subroutine

  ! The coarse cell that holds fine cell i, and the one on the other side of it.
  pure integer function cell_around(i)
    integer, intent(in) :: i
    cell_around = shiftr(i + 1, 1)
  end function

  pure integer function neighbour(i, n)
    integer, intent(in) :: i, n
    neighbour = min(max(cell_around(i) + merge(-1, 1, mod(i, 2) == 1), 1), n)
  end function

  ! The root of the mean square of what r leaves a unit of volume, over all unknowns; summed plane by plane so
  ! that its digits do not depend on the number of threads.
  real(real64) function norm(g) result(root)
    type(grid_level), intent(in) :: g
    real(real64) :: of_plane(g%n)
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 1, g%n
      of_plane(k) = 0
      do j = 1, g%n
        do i = 1, g%n
          of_plane(k) = of_plane(k) + sum(g%r(:, i, j, k)**2)/g%volume(i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
    root = sqrt(sum(of_plane)/(unknowns*sum_of_volumes(g)))
  end function

  real(real64) function sum_of_volumes(g) result(total)
    type(grid_level), intent(in) :: g
    integer :: k

    total = 0
    do k = 1, g%n
      total = total + sum(g%volume(:, :, k))
    end do
  end function
end module
