! The grids of I-MG: cells of a curvilinear grid, and coarser ones of two cells in each direction.
!
! Each level has arrays of its own, because the equations are not linear. Cell (i, j, k) lies behind the faces
! (i, j, k) of its three directions and before those with one index less by 1.
module euler_levels
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use app
  use euler_flux
  use euler_flow
  implicit none
  private

  public :: make_levels, start_flow

  type, public :: grid_level
    integer :: n = 0 ! cells in each direction
    real(real64), allocatable :: w(:, :, :, :)      ! states; (:, 0 and n+1, :, :) is the flow outside
    real(real64), allocatable :: right(:, :, :, :)  ! right side: what the fluxes of a cell add up to
    real(real64), allocatable :: r(:, :, :, :)      ! residual: right side less fluxes
    real(real64), allocatable :: first(:, :, :, :)  ! w as it came from the finer level, then its change
    real(real64), allocatable :: area_i(:, :, :, :), area_j(:, :, :, :), area_k(:, :, :, :)
    real(real64), allocatable :: volume(:, :, :)
  end type

  type(grid_level), allocatable, public :: level(:) ! the finest first

contains

  subroutine make_levels(n, levels, parallel_initialisation, bytes)
    integer, intent(in) :: n, levels
    logical, intent(in) :: parallel_initialisation
    integer(int64), intent(out) :: bytes
    integer :: l

    allocate (level(levels))
    bytes = 0
    do l = 1, levels
      level(l)%n = n/2**(l - 1)
      call allocate_level(level(l), bytes)
    end do
    ! The worksharing loops bind to the region around them: called outside of one, the master thread runs all
    ! of them.
    if (parallel_initialisation) then
      !$omp parallel
      call fill_levels(levels)
      !$omp end parallel
    else
      call fill_levels(levels)
    end if
  end subroutine

  subroutine allocate_level(g, bytes)
    type(grid_level), intent(inout) :: g
    integer(int64), intent(inout) :: bytes
    integer :: n, status(8)

    n = g%n
    ! One line an array, by which homing names them.
    allocate (g%w(unknowns, 0:n + 1, n, n), stat=status(1))
    allocate (g%right(unknowns, n, n, n), stat=status(2))
    allocate (g%r(unknowns, n, n, n), stat=status(3))
    allocate (g%first(unknowns, n, n, n), stat=status(4))
    allocate (g%area_i(3, 0:n, n, n), stat=status(5))
    allocate (g%area_j(3, n, 0:n, n), stat=status(6))
    allocate (g%area_k(3, n, n, 0:n), stat=status(7))
    allocate (g%volume(n, n, n), stat=status(8))
    if (any(status /= 0)) call app_error("not enough memory for the grids")
    bytes = bytes + 8*(size(g%w, kind=int64) + 3*size(g%r, kind=int64) + 3*size(g%area_i, kind=int64) &
        + size(g%volume, kind=int64))
  end subroutine

  ! First touch of all arrays: planes dealt out as in all loops of the solver. A face between planes of two
  ! threads belongs to the one behind it.
  subroutine fill_levels(levels)
    integer, intent(in) :: levels
    integer :: l, k

    !$omp do schedule(static)
    do k = 1, level(1)%n
      call finest_plane(level(1), k)
      call zero_plane(level(1), k)
    end do
    !$omp end do
    do l = 2, levels
      !$omp do schedule(static)
      do k = 1, level(l)%n
        call coarse_plane(level(l - 1), level(l), k)
        call zero_plane(level(l), k)
      end do
      !$omp end do
    end do
  end subroutine

  subroutine zero_plane(g, k)
    type(grid_level), intent(inout) :: g
    integer, intent(in) :: k

    g%w(:, 1:g%n, :, k) = 0
    g%right(:, :, :, k) = 0
    g%r(:, :, :, k) = 0
    g%first(:, :, :, k) = 0
  end subroutine

  ! Areas and volumes of the cells of one plane, from their vertices; and the flow outside.
  subroutine finest_plane(g, k)
    type(grid_level), intent(inout) :: g
    integer, intent(in) :: k
    real(real64), allocatable :: low(:, :, :), high(:, :, :)
    integer :: i, j, n

    n = g%n
    allocate (low(3, 0:n, 0:n), high(3, 0:n, 0:n))
    call vertex_plane(n, k - 1, low)
    call vertex_plane(n, k, high)
    do j = 1, n
      do i = 0, n
        g%area_i(:, i, j, k) = quadrilateral(low(:, i, j - 1), low(:, i, j), high(:, i, j), high(:, i, j - 1))
      end do
      g%w(:, 0, j, k) = flow_at(middle(low(:, 0, j - 1), low(:, 0, j), high(:, 0, j), high(:, 0, j - 1)))
      g%w(:, n + 1, j, k) = flow_at(middle(low(:, n, j - 1), low(:, n, j), high(:, n, j), high(:, n, j - 1)))
    end do
    do j = 0, n
      do i = 1, n
        g%area_j(:, i, j, k) = quadrilateral(low(:, i - 1, j), high(:, i - 1, j), high(:, i, j), low(:, i, j))
      end do
    end do
    do j = 1, n
      do i = 1, n
        if (k == 1) g%area_k(:, i, j, 0) = &
            quadrilateral(low(:, i - 1, j - 1), low(:, i, j - 1), low(:, i, j), low(:, i - 1, j))
        g%area_k(:, i, j, k) = &
            quadrilateral(high(:, i - 1, j - 1), high(:, i, j - 1), high(:, i, j), high(:, i - 1, j))
        g%volume(i, j, k) = hexahedron(low(:, i - 1:i, j - 1:j), high(:, i - 1:i, j - 1:j))
      end do
    end do
  end subroutine

  pure subroutine vertex_plane(n, k, points)
    integer, intent(in) :: n, k
    real(real64), intent(out) :: points(3, 0:n, 0:n)
    integer :: i, j

    do j = 0, n
      do i = 0, n
        points(:, i, j) = vertex(real(i, real64)/n, real(j, real64)/n, real(k, real64)/n)
      end do
    end do
  end subroutine

  ! The area vector of a face with corners a, b, c, d, in the direction of (b - a) x (d - a).
  pure function quadrilateral(a, b, c, d) result(area)
    real(real64), intent(in) :: a(3), b(3), c(3), d(3)
    real(real64) :: area(3)
    area = 0.5_real64*cross(c - a, d - b)
  end function

  pure function cross(a, b) result(product)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: product(3)
    product = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function

  pure function middle(a, b, c, d) result(point)
    real(real64), intent(in) :: a(3), b(3), c(3), d(3)
    real(real64) :: point(3)
    point = 0.25_real64*(a + b + c + d)
  end function

  ! Volume between two quadrilaterals of corners: the triple product of the lines that join opposite faces'
  ! middles, exact for a parallelepiped and right to second order otherwise.
  pure real(real64) function hexahedron(low, high) result(volume)
    real(real64), intent(in) :: low(3, 2, 2), high(3, 2, 2)
    real(real64) :: a(3), b(3), c(3)

    a = sum(low(:, 2, :), 2) + sum(high(:, 2, :), 2) - sum(low(:, 1, :), 2) - sum(high(:, 1, :), 2)
    b = sum(low(:, :, 2), 2) + sum(high(:, :, 2), 2) - sum(low(:, :, 1), 2) - sum(high(:, :, 1), 2)
    c = sum(sum(high, 3), 2) - sum(sum(low, 3), 2)
    volume = dot_product(cross(a, b), c)/64
  end function

  ! Two cells in each direction make a coarse one, four faces a coarse one.
  subroutine coarse_plane(fine, g, k)
    type(grid_level), intent(in) :: fine
    type(grid_level), intent(inout) :: g
    integer, intent(in) :: k
    integer :: i, j, i2, j2, k2

    k2 = 2*k
    do j = 1, g%n
      j2 = 2*j
      do i = 0, g%n
        g%area_i(:, i, j, k) = sum(sum(fine%area_i(:, 2*i, j2 - 1:j2, k2 - 1:k2), 3), 2)
      end do
      g%w(:, 0, j, k) = 0.25_real64*sum(sum(fine%w(:, 0, j2 - 1:j2, k2 - 1:k2), 3), 2)
      g%w(:, g%n + 1, j, k) = 0.25_real64*sum(sum(fine%w(:, fine%n + 1, j2 - 1:j2, k2 - 1:k2), 3), 2)
    end do
    do j = 0, g%n
      do i = 1, g%n
        g%area_j(:, i, j, k) = sum(sum(fine%area_j(:, 2*i - 1:2*i, 2*j, k2 - 1:k2), 3), 2)
      end do
    end do
    do j = 1, g%n
      j2 = 2*j
      do i = 1, g%n
        i2 = 2*i
        if (k == 1) g%area_k(:, i, j, 0) = sum(sum(fine%area_k(:, i2 - 1:i2, j2 - 1:j2, 0), 3), 2)
        g%area_k(:, i, j, k) = sum(sum(fine%area_k(:, i2 - 1:i2, j2 - 1:j2, k2), 3), 2)
        g%volume(i, j, k) = sum(fine%volume(i2 - 1:i2, j2 - 1:j2, k2 - 1:k2))
      end do
    end do
  end subroutine

  ! The same state everywhere inside: that of the middle of the domain.
  subroutine start_flow()
    real(real64) :: state(unknowns)
    integer :: i, j, k

    state = flow_at(vertex(0.5_real64, 0.5_real64, 0.5_real64))
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, level(1)%n
      do j = 1, level(1)%n
        do i = 1, level(1)%n
          level(1)%w(:, i, j, k) = state
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine
end module
