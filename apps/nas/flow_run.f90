! The main loop that BT and SP share: options, time steps of compute_rhs, x_solve, y_solve, z_solve and add, and the
! verification against published norms.
!
! --work repeats x_solve, y_solve, z_solve and add so many times in each step, over the same problem: the synthetic
! experiment of Nikolopoulos et al. 2000, Figure 6. All but the last pass of a solver put back what they found in rhs,
! so that the results stay the same.
module nas_flow_run
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use nas_common
  use nas_flow
  implicit none
  private

  public :: run_flow, flow_published, flow_solver

  ! By class: S, W, A, B.
  type :: flow_published
    integer :: points(4), steps(4)
    real(wp) :: time_step(4)
    real(wp) :: residual(equations, 4), error(equations, 4)
  end type

  abstract interface
    subroutine flow_solver()
    end subroutine
  end interface

contains

  ! `prepare` comes after compute_rhs, before the solvers.
  subroutine run_flow(name, published, prepare, x_solve, y_solve, z_solve)
    character(*), intent(in) :: name
    type(flow_published), intent(in) :: published
    procedure(flow_solver) :: prepare, x_solve, y_solve, z_solve
    type(nas_run) :: run
    integer(c_int) :: verdict
    integer(c_long) :: step, work, pass
    real(wp) :: residual(equations), error(equations)
    character(len=80) :: text

    run = nas_options(name, published%steps, work=work)
    call make_fields(published%points(run%class), published%time_step(run%class), run%parallel_initialisation)
    write (text, "('class ', a, ', ', i0, ' points an edge')") nas_classes(run%class:run%class), n
    call app_describe(text, int((3*size(u) + 6*size(inverse))*storage_size(u)/8, c_long), run%initialisation, &
        int(omp_get_max_threads(), c_int))
    call make_forcing()
    call start_values()

    call app_iterations_begin(run%iterations)
    do step = 1, run%iterations
      call app_iteration_begin()
      call compute_rhs()
      call prepare()
      call repeat(x_solve)
      call repeat(y_solve)
      call repeat(z_solve)
      do pass = 1, work
        call add(1.0_wp/work)
      end do
      call app_iteration_end()
    end do
    call app_iterations_end()

    error = error_norm()
    residual = residual_norm()
    call report("residual", residual)
    call report("error", error)
    if (run%published_iterations) then
      verdict = app_successful
      call compare(residual, published%residual(:, run%class), verdict)
      call compare(error, published%error(:, run%class), verdict)
      call app_finish(verdict)
    else
      call app_finish(app_not_applicable)
    end if

  contains

    subroutine repeat(solver)
      procedure(flow_solver) :: solver

      do pass = 1, work
        keeps_solutions = pass == work
        call solver()
      end do
    end subroutine
  end subroutine

  subroutine report(name, norm)
    character(*), intent(in) :: name
    real(wp), intent(in) :: norm(:)
    integer :: m

    do m = 1, size(norm)
      call app_result(name//" "//achar(iachar("0") + m), norm(m))
    end do
  end subroutine

  subroutine compare(norm, published, verdict)
    real(wp), intent(in) :: norm(:), published(:)
    integer(c_int), intent(inout) :: verdict
    real(wp), parameter :: tolerance = 1.0e-8_wp
    integer :: m

    do m = 1, size(norm)
      if (app_compare(norm(m), published(m), tolerance) /= app_successful) verdict = app_failed
    end do
  end subroutine
end module
