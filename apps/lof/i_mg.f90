! I-MG: the steady, compressible Euler equations in three dimensions, by finite volumes with flux-vector splitting on
! a curvilinear grid, solved by a full-approximation multigrid with five levels.
!
! Source: H. Löf, M. Nordén, S. Holmgren, "Improving Geographical Locality of Data for Shared Memory
! Implementations of PDE Solvers", Uppsala University, 2004, section 3. The paper does not print the program; it
! names its equations, discretisation, smoother and levels, 10 iterations, and 128 cells in each direction.
program i_mg
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use euler_flux
  use euler_flow
  use euler_levels
  use euler_multigrid
  implicit none

  integer, parameter :: levels = 5
  integer(c_long), parameter :: paper_iterations = 10
  ! The paper's number of iterations must reduce the residual by this factor, and leave an error of the density
  ! that is the one of a first-order scheme: the mean error times the number of cells in a direction tends to a
  ! constant, whatever the number (0.236 with 16 cells, 0.244 with 32, 0.249 with 64).
  real(real64), parameter :: reduction = 1.0e-3_real64
  real(real64), parameter :: error_constant = 0.25_real64, error_tolerance = 0.1_real64

  integer(c_int) :: initialisation
  integer(c_long) :: iterations, iteration
  integer(int64) :: bytes
  integer :: n
  real(real64) :: start_norm, last_norm, error
  logical :: right
  character(len=80) :: text

  call app_begin("i_mg")
  n = int(app_integer_option("--n", 32_c_long, 16_c_long, 512_c_long, &
      "cells in each direction, a multiple of 16; the paper has 128"))
  iterations = app_integer_option("--iterations", paper_iterations, 1_c_long, 100000_c_long, &
      "multigrid cycles; the paper's 10 must converge")
  initialisation = app_initialise_option()
  call app_options_end()
  if (mod(n, 2**(levels - 1)) /= 0) call app_missing("--n", "must be a multiple of 16")

  call make_levels(n, levels, initialisation == app_parallel, bytes)
  write (text, "(i0, ' cells a side, ', i0, ' levels')") n, levels
  call app_describe(text, int(bytes, c_long), initialisation, int(omp_get_max_threads(), c_int))
  call start_flow()
  call residual(level(1))
  start_norm = norm(level(1))
  last_norm = start_norm

  call app_iterations_begin(iterations)
  do iteration = 1, iterations
    call app_iteration_begin()
    call cycle_from(1)
    call residual(level(1))
    last_norm = norm(level(1))
    call app_iteration_end("residual", last_norm/start_norm)
  end do
  call app_iterations_end()

  error = density_error(level(1))
  call app_result("residual", last_norm/start_norm)
  call app_result("mean error of the density", error)
  call app_result("mean error times cells a side", error*n)
  right = last_norm < start_norm
  if (iterations >= paper_iterations) right = last_norm <= reduction*start_norm &
      .and. abs(error*n - error_constant) <= error_tolerance*error_constant
  call app_finish(merge(app_successful, app_failed, right))

contains

  ! The mean over the volume of the difference to the flow in the middle of each cell.
  real(real64) function density_error(g) result(error)
    type(grid_level), intent(in) :: g
    real(real64) :: of_plane(g%n), volume_of_plane(g%n), flow(unknowns)
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j, flow)
    do k = 1, g%n
      of_plane(k) = 0
      volume_of_plane(k) = 0
      do j = 1, g%n
        do i = 1, g%n
          flow = flow_at(vertex((i - 0.5_real64)/g%n, (j - 0.5_real64)/g%n, (k - 0.5_real64)/g%n))
          of_plane(k) = of_plane(k) + g%volume(i, j, k)*abs(g%w(1, i, j, k) - flow(1))
          volume_of_plane(k) = volume_of_plane(k) + g%volume(i, j, k)
        end do
      end do
    end do
    !$omp end parallel do
    error = sum(of_plane)/sum(volume_of_plane)
  end function
end program
