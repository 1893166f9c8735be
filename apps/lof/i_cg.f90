! I-CG: conjugate gradients on a sparse matrix from a file, made for the edge-element matrix of Maxwell's
! equations on an unstructured tetrahedral mesh.
!
! Source: H. Löf, M. Nordén, S. Holmgren, "Improving Geographical Locality of Data for Shared Memory
! Implementations of PDE Solvers", Uppsala University, 2004, section 3. The paper does not print the program; it
! says what its iteration does, that it runs 47 of them, and that the matrix is read by one thread.
program i_cg
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use sparse_rows
  use conjugate_gradients
  use matrix_file
  implicit none

  integer(c_long), parameter :: paper_iterations = 47
  ! What the paper's number of iterations must reach on a matrix that is made for it, and how far apart the
  ! residual that is updated and the one that is computed may be; both relative to the right side.
  real(real64), parameter :: converged = 1.0e-5_real64, agreement = 1.0e-12_real64

  integer(c_int) :: initialisation
  integer(c_long) :: iterations, iteration
  real(real64) :: start_norm, updated, computed
  character(:), allocatable :: path
  logical :: right

  call app_begin("i_cg")
  path = app_text_option("--matrix", "FILE", "Matrix Market file: square, symmetric and positive definite")
  iterations = app_integer_option("--iterations", paper_iterations, 1_c_long, 1000000_c_long, &
      "of the conjugate gradient method; the paper's 47 must converge")
  initialisation = app_initialise_option()
  call app_options_end()
  if (path == "") call app_missing("--matrix", "wants a Matrix Market file")

  call read_matrix(path, initialisation == app_parallel)
  call make_vectors(initialisation == app_parallel)
  call describe()
  call set_right_side()
  call cg_begin()
  start_norm = sqrt(rho)

  call app_iterations_begin(iterations)
  do iteration = 1, iterations
    call app_iteration_begin()
    call cg_step()
    call app_iteration_end("residual", sqrt(rho)/start_norm)
  end do
  call app_iterations_end()

  updated = sqrt(rho)/start_norm
  computed = residual_norm()/start_norm
  call app_result("residual", updated)
  call app_result("residual computed anew", computed)
  call app_result("largest error", largest_error())
  right = abs(updated - computed) <= agreement .and. updated < 1
  if (iterations >= paper_iterations) right = right .and. computed <= converged
  call app_finish(merge(app_successful, app_failed, right))

contains

  ! The solution is known, and smooth in the number of the row.
  pure real(real64) function solution(row)
    integer, intent(in) :: row
    solution = sin(0.001_real64*row)
  end function

  ! x = A solution, z = solution for the moment.
  subroutine set_right_side()
    integer :: block, row

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        z(row) = solution(row)
      end do
    end do
    !$omp end parallel do

    !$omp parallel do schedule(static)
    do block = 1, blocks
      call multiply_block(block, z, x)
    end do
    !$omp end parallel do
  end subroutine

  real(real64) function largest_error() result(error)
    integer :: row

    error = 0
    do row = 1, rows
      error = max(error, abs(z(row) - solution(row)))
    end do
  end function

  subroutine describe()
    character(len=80) :: text
    integer(int64) :: numbers, indices

    write (text, "(i0, ' rows, ', i0, ' nonzeros')") rows, size(column)
    numbers = size(element, kind=int64) + 5*size(x, kind=int64)
    indices = size(column, kind=int64) + size(row_start, kind=int64)
    call app_describe(text, int((numbers*storage_size(x) + indices*storage_size(column))/8, c_long), &
        initialisation, int(omp_get_max_threads(), c_int))
  end subroutine
end program
