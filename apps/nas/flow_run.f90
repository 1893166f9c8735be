! What BT and SP share around their time steps: options, the start, and the verification against published norms.
!
! --work repeats x_solve, y_solve, z_solve and add so many times in each step, over the same problem: the synthetic
! experiment of Nikolopoulos et al. 2000, Figure 6. All but the last pass of a solver put back what they found in rhs,
! so that the results stay the same. --upmlib puts the calls of their Figure 2 around z_solve (apps/common/upmlib.h).
module nas_flow_run
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use nas_common
  use nas_flow
  implicit none
  private

  public :: flow_published, flow_run, flow_begin, flow_end

  ! By class: S, W, A, B.
  type :: flow_published
    integer :: points(4), steps(4)
    real(wp) :: time_step(4)
    real(wp) :: residual(equations, 4), error(equations, 4)
  end type

  type :: flow_run
    type(nas_run) :: run
    integer(c_long) :: steps, work
  end type

contains

  ! Everything before the time steps.
  type(flow_run) function flow_begin(name, published) result(flow)
    character(*), intent(in) :: name
    type(flow_published), intent(in) :: published
    character(len=80) :: text

    flow%run = nas_options(name, published%steps, work=flow%work)
    flow%steps = flow%run%iterations
    call make_fields(published%points(flow%run%class), published%time_step(flow%run%class), &
        flow%run%parallel_initialisation)
    write (text, "('class ', a, ', ', i0, ' points an edge')") nas_classes(flow%run%class:flow%run%class), n
    call app_describe(text, int((3*size(u) + 6*size(inverse))*storage_size(u)/8, c_long), flow%run%initialisation, &
        int(omp_get_max_threads(), c_int))
    call make_forcing()
    call start_values()
    call app_iterations_begin(flow%steps)
  end function

  ! Everything behind them.
  subroutine flow_end(flow, published)
    type(flow_run), intent(in) :: flow
    type(flow_published), intent(in) :: published
    integer(c_int) :: verdict
    real(wp) :: residual(equations), error(equations)

    call app_iterations_end()
    error = error_norm()
    residual = residual_norm()
    call report("residual", residual)
    call report("error", error)
    if (flow%run%published_iterations) then
      verdict = app_successful
      call compare(residual, published%residual(:, flow%run%class), verdict)
      call compare(error, published%error(:, flow%run%class), verdict)
      call app_finish(verdict)
    else
      call app_finish(app_not_applicable)
    end if
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
