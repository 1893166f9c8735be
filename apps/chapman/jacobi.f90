! Jacobi's method for Laplace's equation on a square (Chapman, Patil, Prabhakar 2001, program 1, and the
! copy loop of program 4): 5 points, plain OpenMP, with the directives that `homing translate` reads.
!
! The boundary values are those of the discrete harmonic function h = x + 2y + x^2 - y^2, and the iteration
! starts from h plus one eigenvector e of the iteration matrix, sin(4 pi x) sin(3 pi y), with eigenvalue
! lambda = (cos(4 pi d) + cos(3 pi d)) / 2 at distance d of the points. So after m steps the grid must hold
! h + lambda^m e but for rounding, for every n and m, and every point is checked against that.
program jacobi
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use, intrinsic :: iso_fortran_env, only: real64
  use omp_lib, only: omp_get_max_threads
  use app
  implicit none

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  ! Rounding of values below 4, which the steps average and do not amplify, and of lambda, which its m-th
  ! power multiplies by m.
  real(real64), parameter :: tolerance = 1e-13_real64, tolerance_a_step = 2.3e-16_real64

  integer :: n, iterations, steps, i, j, k, m, status
  integer(c_int) :: initialisation
  real(real64) :: d, x, y, lambda, shrunk, total, worst, tolerated
  real(real64), allocatable :: a(:, :), b(:, :), sine(:, :), column_sum(:), column_error(:)
  character(64) :: size_text
  !$homing distribute a(*, block), b(*, block)
  !$homing align column_sum(j) with b(*, j)
  !$homing align column_error(j) with b(*, j)

  call app_begin("chapman_jacobi")
  n = int(app_integer_option("--n", 1024_c_long, 1_c_long, 30000_c_long, &
      "interior points a side, default 1024"))
  iterations = int(app_integer_option("--iterations", 10_c_long, 1_c_long, 1000000_c_long, "default 10"))
  steps = int(app_integer_option("--steps", 10_c_long, 1_c_long, 1000000_c_long, &
      "steps of the method an iteration, default 10"))
  initialisation = app_initialise_option()
  call app_options_end()

  allocate (a(0:n + 1, 0:n + 1), b(0:n + 1, 0:n + 1), stat=status)
  if (status /= 0) call app_error("not enough memory for the grids")
  allocate (sine(0:n + 1, 4), column_sum(0:n + 1), column_error(0:n + 1))

  d = 1 / real(n + 1, real64)
  do m = 1, 4
    do i = 0, n + 1
      sine(i, m) = sin(real(m, real64)*pi*real(i, real64)*d)
    end do
    sine(0, m) = 0
    sine(n + 1, m) = 0
  end do

  !$omp parallel do private(i, x, y) schedule(static) if (initialisation == app_parallel)
  !$homing on home(b(:, j))
  do j = 0, n + 1
    y = real(j, real64)*d
    do i = 0, n + 1
      x = real(i, real64)*d
      b(i, j) = x + 2*y + x*x - y*y + sine(i, 4)*sine(j, 3)
      a(i, j) = b(i, j)
    end do
  end do
  !$omp end parallel do

  write (size_text, '(i0, " x ", i0, " points")') n, n
  call app_describe(size_text, 2_c_long*8*int(n + 2, c_long)*int(n + 2, c_long), initialisation, &
      int(omp_get_max_threads(), c_int))
  call app_iterations_begin(int(iterations, c_long))
  do m = 1, iterations
    call app_iteration_begin()
    do k = 1, steps
      !$omp parallel do private(i) schedule(static)
      !$homing on home(a(:, j))
      do j = 1, n
        do i = 1, n
          a(i, j) = (b(i - 1, j) + b(i + 1, j) + b(i, j - 1) + b(i, j + 1))*0.25_real64
        end do
      end do
      !$omp end parallel do
      !$omp parallel do private(i) schedule(static)
      !$homing on home(b(:, j))
      do j = 1, n
        do i = 1, n
          b(i, j) = a(i, j)
        end do
      end do
      !$omp end parallel do
    end do
    call app_iteration_end()
  end do
  call app_iterations_end()

  lambda = (cos(4*pi*d) + cos(3*pi*d))/2
  shrunk = lambda**(iterations*steps)
  ! Per column, added up in the order of the columns, so that the digits are those of one thread.
  !$omp parallel do private(i, x, y) schedule(static)
  !$homing on home(b(:, j))
  do j = 0, n + 1
    y = real(j, real64)*d
    column_sum(j) = 0
    column_error(j) = 0
    do i = 0, n + 1
      x = real(i, real64)*d
      column_sum(j) = column_sum(j) + b(i, j)
      column_error(j) = column_error(j) + abs(b(i, j) - (x + 2*y + x*x - y*y + shrunk*sine(i, 4)*sine(j, 3)))
    end do
  end do
  !$omp end parallel do
  total = 0
  worst = 0
  do j = 0, n + 1
    total = total + column_sum(j)
    worst = worst + column_error(j)
  end do
  ! The mean, in which a value that is not a number shows; a maximum would lose it.
  worst = worst/(real(n + 2, real64)*real(n + 2, real64))
  tolerated = tolerance + tolerance_a_step*real(iterations, real64)*real(steps, real64)
  call app_result("sum", total)
  call app_result("mean error", worst)
  call app_result("tolerated error", tolerated)
  call app_finish(merge(app_successful, app_failed, worst <= tolerated))
end program
