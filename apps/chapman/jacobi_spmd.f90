! jacobi.f90 written by hand in SPMD style (Chapman, Patil, Prabhakar 2001, program 4): each thread allocates its
! columns with a shadow of one on either side, and passes its outer columns on through shared buffers. As printed
! the program races: with one barrier a step, a thread may fill its buffer for the next step while a neighbour
! still reads it. Two buffers in turn mend that.
program jacobi_spmd
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use, intrinsic :: iso_fortran_env, only: real64
  use omp_lib, only: omp_get_max_threads, omp_get_num_threads, omp_get_thread_num
  use app
  implicit none

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  real(real64), parameter :: tolerance = 1e-13_real64, tolerance_a_step = 2.3e-16_real64

  integer :: n, iterations, steps, i, j, m
  real(real64) :: d, lambda, shrunk, total, worst, tolerated
  ! first(:, p, t): the first column of thread p in steps of parity t; last likewise.
  real(real64), allocatable :: first(:, :, :), last(:, :, :), sine(:, :), column_sum(:), column_error(:)
  character(64) :: size_text

  call app_begin("chapman_jacobi")
  n = int(app_integer_option("--n", 1024_c_long, 1_c_long, 30000_c_long, &
      "interior points a side, default 1024"))
  iterations = int(app_integer_option("--iterations", 10_c_long, 1_c_long, 1000000_c_long, "default 10"))
  steps = int(app_integer_option("--steps", 10_c_long, 1_c_long, 1000000_c_long, &
      "steps of the method an iteration, default 10"))
  call app_options_end()

  allocate (first(n, 0:omp_get_max_threads() - 1, 0:1), last(n, 0:omp_get_max_threads() - 1, 0:1))
  allocate (sine(0:n + 1, 4), column_sum(0:n + 1), column_error(0:n + 1))
  d = 1 / real(n + 1, real64)
  do m = 1, 4
    do i = 0, n + 1
      sine(i, m) = sin(real(m, real64)*pi*real(i, real64)*d)
    end do
    sine(0, m) = 0
    sine(n + 1, m) = 0
  end do
  lambda = (cos(4*pi*d) + cos(3*pi*d))/2
  shrunk = lambda**(iterations*steps)
  write (size_text, '(i0, " x ", i0, " points")') n, n
  call app_describe(size_text, 2_c_long*8*int(n + 2, c_long)*int(n + 2, c_long), app_parallel, &
      int(omp_get_max_threads(), c_int))

  !$omp parallel default(shared)
  call thread(omp_get_thread_num(), omp_get_num_threads())
  !$omp end parallel

  total = 0
  worst = 0
  do j = 0, n + 1
    total = total + column_sum(j)
    worst = worst + column_error(j)
  end do
  worst = worst/(real(n + 2, real64)*real(n + 2, real64))
  tolerated = tolerance + tolerance_a_step*real(iterations, real64)*real(steps, real64)
  call app_result("sum", total)
  call app_result("mean error", worst)
  call app_result("tolerated error", tolerated)
  call app_finish(merge(app_successful, app_failed, worst <= tolerated))

contains

  subroutine thread(me, threads)
    integer, intent(in) :: me, threads
    integer :: width, low, high, m, k, parity
    real(real64), allocatable :: a(:, :), b(:, :)

    width = (n + 2 + threads - 1)/threads
    low = min(me*width, n + 2)
    high = min(low + width - 1, n + 1)
    allocate (a(0:n + 1, low - 1:high + 1), b(0:n + 1, low - 1:high + 1))
    call start(a, b, low, high)
    !$omp barrier
    !$omp master
    call app_iterations_begin(int(iterations, c_long))
    !$omp end master
    parity = 0
    do m = 1, iterations
      !$omp master
      call app_iteration_begin()
      !$omp end master
      do k = 1, steps
        call exchange(b, low, high, me, parity)
        parity = 1 - parity
        call sweep(a, b, low, high)
      end do
      !$omp barrier
      !$omp master
      call app_iteration_end()
      !$omp end master
    end do
    !$omp master
    call app_iterations_end()
    !$omp end master
    call check(b, low, high)
  end subroutine

  subroutine start(a, b, low, high)
    integer, intent(in) :: low, high
    real(real64), intent(inout) :: a(0:n + 1, low - 1:high + 1), b(0:n + 1, low - 1:high + 1)
    integer :: i, j
    real(real64) :: x, y

    do j = low, high
      y = real(j, real64)*d
      do i = 0, n + 1
        x = real(i, real64)*d
        b(i, j) = x + 2*y + x*x - y*y + sine(i, 4)*sine(j, 3)
        a(i, j) = b(i, j)
      end do
    end do
  end subroutine

  subroutine exchange(b, low, high, me, parity)
    integer, intent(in) :: low, high, me, parity
    real(real64), intent(inout) :: b(0:n + 1, low - 1:high + 1)

    if (low <= high) then
      first(1:n, me, parity) = b(1:n, low)
      last(1:n, me, parity) = b(1:n, high)
    end if
    !$omp barrier
    if (low <= high) then
      if (low > 0) b(1:n, low - 1) = last(1:n, me - 1, parity)
      if (high < n + 1) b(1:n, high + 1) = first(1:n, me + 1, parity)
    end if
  end subroutine

  subroutine sweep(a, b, low, high)
    integer, intent(in) :: low, high
    real(real64), intent(inout) :: a(0:n + 1, low - 1:high + 1), b(0:n + 1, low - 1:high + 1)
    integer :: i, j

    do j = max(1, low), min(n, high)
      do i = 1, n
        a(i, j) = (b(i - 1, j) + b(i + 1, j) + b(i, j - 1) + b(i, j + 1))*0.25_real64
      end do
    end do
    do j = max(1, low), min(n, high)
      do i = 1, n
        b(i, j) = a(i, j)
      end do
    end do
  end subroutine

  subroutine check(b, low, high)
    integer, intent(in) :: low, high
    real(real64), intent(in) :: b(0:n + 1, low - 1:high + 1)
    integer :: i, j
    real(real64) :: x, y

    do j = low, high
      y = real(j, real64)*d
      column_sum(j) = 0
      column_error(j) = 0
      do i = 0, n + 1
        x = real(i, real64)*d
        column_sum(j) = column_sum(j) + b(i, j)
        column_error(j) = column_error(j) + abs(b(i, j) - (x + 2*y + x*x - y*y + shrunk*sine(i, 4)*sine(j, 3)))
      end do
    end do
  end subroutine
end program
