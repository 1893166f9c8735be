! LU factorisation without pivoting (Chapman, Patil, Prabhakar 2001, program 2): plain OpenMP, its loops without a
! schedule as printed, with the directives that `homing translate` reads. They deal columns out in turn, because
! the part of the matrix that is still worked on shrinks towards its last columns.
!
! The matrix is D K, K(i,j) = r^|i-j| and D diagonal, whose factors are known: L(i,j) = d(i)/d(j) r^(i-j),
! U(1,j) = d(1) r^(j-1), U(i,j) = d(i) (1 - r^2) r^(j-i). Every element is checked against them.
program lu_factorisation
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use, intrinsic :: iso_fortran_env, only: real64
  use omp_lib, only: omp_get_max_threads
  use app
  implicit none

  ! Of the mean of the errors; an element is the sum of up to n terms below 2.
  real(real64), parameter :: tolerance_a_step = 1e-15_real64

  integer :: n, i, j, k, status
  integer(c_int) :: initialisation
  real(real64) :: r, expected, total, worst, tolerated
  real(real64), allocatable :: lu(:, :), power(:), d(:), column_sum(:), column_error(:)
  character(64) :: size_text
  !$homing distribute lu(*, cyclic)
  !$homing align column_sum(j) with lu(*, j)
  !$homing align column_error(j) with lu(*, j)

  call app_begin("chapman_lu")
  n = int(app_integer_option("--n", 2048_c_long, 1_c_long, 30000_c_long, "rows and columns, default 2048"))
  initialisation = app_initialise_option()
  call app_options_end()

  allocate (lu(n, n), stat=status)
  if (status /= 0) call app_error("not enough memory for the matrix")
  allocate (power(0:n), d(n), column_sum(n), column_error(n))
  ! So near to 1 that no power is small.
  r = 1 - 4/real(n + 8, real64)
  do i = 0, n
    power(i) = r**i
  end do
  do i = 1, n
    d(i) = 1 + real(mod(7*i, 5), real64)/8
  end do

  !$omp parallel do private(i) if (initialisation == app_parallel)
  !$homing affinity(j) = data(lu(1, j))
  do j = 1, n
    do i = 1, n
      lu(i, j) = d(i)*power(abs(i - j))
    end do
  end do
  !$omp end parallel do

  write (size_text, '(i0, " x ", i0)') n, n
  call app_describe(size_text, 8_c_long*int(n, c_long)*int(n, c_long), initialisation, &
      int(omp_get_max_threads(), c_int))
  call app_iterations_begin(1_c_long)
  call app_iteration_begin()
  !$omp parallel private(i, j, k)
  do k = 1, n - 1
    !$omp single
    do i = k + 1, n
      lu(i, k) = lu(i, k)/lu(k, k)
    end do
    !$omp end single
    !$omp do
    !$homing affinity(j) = data(lu(1, j))
    do j = k + 1, n
      do i = k + 1, n
        lu(i, j) = lu(i, j) - lu(k, j)*lu(i, k)
      end do
    end do
    !$omp end do
  end do
  !$omp end parallel
  call app_iteration_end()
  call app_iterations_end()

  ! Per column, added up in the order of the columns, so that the digits are those of one thread.
  !$omp parallel do private(i, expected)
  !$homing affinity(j) = data(lu(1, j))
  do j = 1, n
    column_sum(j) = 0
    column_error(j) = 0
    do i = 1, n
      if (i > j) then
        expected = d(i)/d(j)*power(i - j)
      else if (i == 1) then
        expected = d(1)*power(j - 1)
      else
        expected = d(i)*(1 - r*r)*power(j - i)
      end if
      column_sum(j) = column_sum(j) + lu(i, j)
      column_error(j) = column_error(j) + abs(lu(i, j) - expected)
    end do
  end do
  !$omp end parallel do
  total = 0
  worst = 0
  do j = 1, n
    total = total + column_sum(j)
    worst = worst + column_error(j)
  end do
  worst = worst/(real(n, real64)*real(n, real64))
  tolerated = tolerance_a_step*real(n, real64)
  call app_result("sum", total)
  call app_result("mean error", worst)
  call app_result("tolerated error", tolerated)
  call app_finish(merge(app_successful, app_failed, worst <= tolerated))
end program
