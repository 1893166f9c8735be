! The NAS benchmark CG: the smallest eigenvalue of a large sparse matrix by inverse iteration, each
! step of which solves A z = x by 25 steps of the conjugate gradient method.
!
! Source: RNR-94-007 (see common.f90), kernel CG; classes and values as published with the NAS Parallel
! Benchmarks 3.
module cg_inverse_iteration
  use, intrinsic :: iso_fortran_env, only: real64
  use sparse_rows
  use conjugate_gradients
  implicit none
  private

  public :: conj_grad, start_vector, inverse_iteration

  integer, parameter :: conj_grad_steps = 25

contains

  subroutine start_vector()
    integer :: block, row

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        x(row) = 1
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! Solves A z = x approximately.
  subroutine conj_grad()
    integer :: step

    call cg_begin()
    do step = 1, conj_grad_steps
      call cg_step()
    end do
  end subroutine

  ! x = z / ||z||; returns the estimate of the eigenvalue.
  real(real64) function inverse_iteration(shift) result(zeta)
    real(real64), intent(in) :: shift
    real(real64) :: scaling
    integer :: block, row

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      part(block) = 0
      other_part(block) = 0
      do row = block_first(block), block_last(block)
        part(block) = part(block) + x(row)*z(row)
        other_part(block) = other_part(block) + z(row)*z(row)
      end do
    end do
    !$omp end parallel do
    zeta = shift + 1/sum_in_order(part)
    scaling = 1/sqrt(sum_in_order(other_part))

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        x(row) = scaling*z(row)
      end do
    end do
    !$omp end parallel do
  end function
end module

program cg
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use nas_common
  use sparse_rows
  use conjugate_gradients
  use cg_matrix
  use cg_inverse_iteration
  implicit none

  ! By class: S, W, A, B, C.
  integer, parameter :: order(5) = [1400, 7000, 14000, 75000, 150000]
  integer, parameter :: nonzeros_a_vector(5) = [7, 8, 11, 13, 15]
  integer, parameter :: published_iterations(5) = [15, 15, 15, 75, 75]
  real(real64), parameter :: shifts(5) = [10, 12, 20, 60, 110]
  real(real64), parameter :: published_zeta(5) = [8.5971775078648_real64, 10.362595087124_real64, &
      17.130235054029_real64, 22.712745482631_real64, 28.973605592845_real64]
  real(real64), parameter :: tolerance = 1.0e-10_real64

  type(nas_run) :: run
  real(real64) :: shift, zeta, norm
  integer(c_long) :: iteration

  run = nas_options("cg", published_iterations, "published", app_published)
  shift = shifts(run%class)
  call make_matrix(order(run%class), nonzeros_a_vector(run%class), shift, run%initialisation)
  call make_vectors(run%initialisation /= app_serial)
  call describe()

  ! One iteration that is not timed, as published, then from the start again.
  call start_vector()
  call conj_grad()
  norm = residual_norm()
  zeta = inverse_iteration(shift)
  call start_vector()

  call app_iterations_begin(run%iterations)
  do iteration = 1, run%iterations
    call app_iteration_begin()
    call conj_grad()
    norm = residual_norm()
    zeta = inverse_iteration(shift)
    call app_iteration_end("zeta", zeta)
  end do
  call app_iterations_end()

  call app_result("zeta", zeta)
  call app_result("residual norm", norm)
  if (run%published_iterations) then
    call app_result("published zeta", published_zeta(run%class))
    call app_finish(app_compare(zeta, published_zeta(run%class), tolerance))
  else
    call app_finish(app_not_applicable)
  end if

contains

  subroutine describe()
    character(len=80) :: text
    integer(int64) :: numbers, indices

    write (text, "('class ', a, ', ', i0, ' rows, ', i0, ' nonzeros')") &
        nas_classes(run%class:run%class), rows, size(column)
    numbers = size(element, kind=int64) + 5*size(x, kind=int64)
    indices = size(column, kind=int64) + size(row_start, kind=int64)
    call app_describe(text, int((numbers*storage_size(x) + indices*storage_size(column))/8, c_long), &
        run%initialisation, int(omp_get_max_threads(), c_int))
  end subroutine
end program
