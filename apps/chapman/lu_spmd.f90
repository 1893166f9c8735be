! lu.f90 written by hand in SPMD style (Chapman, Patil, Prabhakar 2001, program 5): each thread allocates its
! columns, every threads-th one, and the pivot column comes to all through a shared buffer. As printed the program
! races: with one barrier a step, the next pivot's owner may fill the buffer while others still copy from it. Two
! buffers in turn mend that.
program lu_spmd
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use, intrinsic :: iso_fortran_env, only: real64
  use omp_lib, only: omp_get_max_threads, omp_get_num_threads, omp_get_thread_num
  use app
  implicit none

  real(real64), parameter :: tolerance_a_step = 1e-15_real64

  integer :: n, i, j
  real(real64) :: r, total, worst, tolerated
  real(real64), allocatable :: power(:), d(:), pivot(:, :), column_sum(:), column_error(:)
  character(64) :: size_text

  call app_begin("chapman_lu")
  n = int(app_integer_option("--n", 2048_c_long, 1_c_long, 30000_c_long, "rows and columns, default 2048"))
  call app_options_end()

  allocate (power(0:n), d(n), pivot(n, 0:1), column_sum(n), column_error(n))
  r = 1 - 4/real(n + 8, real64)
  do i = 0, n
    power(i) = r**i
  end do
  do i = 1, n
    d(i) = 1 + real(mod(7*i, 5), real64)/8
  end do
  write (size_text, '(i0, " x ", i0)') n, n
  call app_describe(size_text, 8_c_long*int(n, c_long)*int(n, c_long), app_parallel, &
      int(omp_get_max_threads(), c_int))

  !$omp parallel default(shared)
  call thread(omp_get_thread_num(), omp_get_num_threads())
  !$omp end parallel

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

contains

  ! Column own of a thread is column me + 1 + (own - 1)*threads of the matrix.
  subroutine thread(me, threads)
    integer, intent(in) :: me, threads
    integer :: owns, own, i, j
    real(real64) :: expected
    real(real64), allocatable :: lu(:, :)

    owns = (n - me + threads - 1)/threads
    allocate (lu(n, owns))
    do own = 1, owns
      j = me + 1 + (own - 1)*threads
      do i = 1, n
        lu(i, own) = d(i)*power(abs(i - j))
      end do
    end do
    !$omp barrier
    !$omp master
    call app_iterations_begin(1_c_long)
    call app_iteration_begin()
    !$omp end master
    call factorise(lu, owns, me, threads)
    !$omp barrier
    !$omp master
    call app_iteration_end()
    call app_iterations_end()
    !$omp end master

    do own = 1, owns
      j = me + 1 + (own - 1)*threads
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
        column_sum(j) = column_sum(j) + lu(i, own)
        column_error(j) = column_error(j) + abs(lu(i, own) - expected)
      end do
    end do
  end subroutine

  subroutine factorise(lu, owns, me, threads)
    integer, intent(in) :: owns, me, threads
    real(real64), intent(inout) :: lu(n, owns)
    real(real64), allocatable :: own_pivot(:)
    integer :: i, j, k, counter

    allocate (own_pivot(n))
    counter = 1 ! the first own column that is not done
    do k = 1, n - 1
      if (mod(k - 1, threads) == me) then
        do i = k + 1, n
          lu(i, counter) = lu(i, counter)/lu(k, counter)
        end do
        pivot(k + 1:n, mod(k, 2)) = lu(k + 1:n, counter)
        counter = counter + 1
      end if
      !$omp barrier
      own_pivot(k + 1:n) = pivot(k + 1:n, mod(k, 2))
      do j = counter, owns
        do i = k + 1, n
          lu(i, j) = lu(i, j) - lu(k, j)*own_pivot(i)
        end do
      end do
    end do
  end subroutine
end program
