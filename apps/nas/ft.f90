! The NAS benchmark FT: a diffusion equation solved in the space of frequencies. Random numbers are transformed once;
! each iteration lets them decay for one more step of time and transforms them back, in all three directions of a
! grid, of which the last one runs across the planes that threads have in the others.
!
! Source: RNR-94-007 (see common.f90), kernel FT; classes and values as published with the NAS Parallel Benchmarks 3.
module ft_grids
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use nas_common
  implicit none
  private

  integer, parameter, public :: wp = real64
  real(wp), parameter :: pi = acos(-1.0_wp), diffusivity = 1.0e-6_wp
  ! Lines that are transformed together: a transform goes from one to the next of them at each step.
  integer, parameter :: lines = 16

  integer, public :: edge(3)
  ! Frequencies, space, and what a frequency keeps in a step of time.
  complex(wp), allocatable, public :: frequencies(:, :, :), space(:, :, :)
  real(wp), allocatable, public :: kept(:, :, :)

  public :: make_grids, random_values, make_decay, decay, transform, checksum

contains

  subroutine make_grids(edges, parallel)
    integer, intent(in) :: edges(3)
    logical, intent(in) :: parallel
    integer :: k

    edge = edges
    allocate (frequencies(edge(1), edge(2), edge(3)), space(edge(1), edge(2), edge(3)))
    allocate (kept(edge(1), edge(2), edge(3)))
    if (parallel) then
      !$omp parallel do schedule(static)
      do k = 1, edge(3)
        call touch(k)
      end do
      !$omp end parallel do
    else
      do k = 1, edge(3)
        call touch(k)
      end do
    end if
  end subroutine

  subroutine touch(k)
    integer, intent(in) :: k
    frequencies(:, :, k) = 0
    space(:, :, k) = 0
    kept(:, :, k) = 0
  end subroutine

  ! Real and imaginary parts are one sequence, the first index fastest.
  subroutine random_values()
    integer :: i, j, k
    integer(int64) :: state
    real(wp) :: real_part

    !$omp parallel do schedule(static) private(i, j, state, real_part)
    do k = 1, edge(3)
      state = random_skip(random_seed_value, 2_int64*edge(1)*edge(2)*(k - 1))
      do j = 1, edge(2)
        do i = 1, edge(1)
          real_part = random_next(state)
          frequencies(i, j, k) = cmplx(real_part, random_next(state), wp)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! The frequency of an index: the upper half stands for negative ones.
  pure integer function frequency(index, d)
    integer, intent(in) :: index, d
    frequency = modulo(index - 1 + edge(d)/2, edge(d)) - edge(d)/2
  end function

  subroutine make_decay()
    integer :: i, j, k, squares

    !$omp parallel do schedule(static) private(i, j, squares)
    do k = 1, edge(3)
      do j = 1, edge(2)
        do i = 1, edge(1)
          squares = frequency(i, 1)**2 + frequency(j, 2)**2 + frequency(k, 3)**2
          kept(i, j, k) = exp(-4*diffusivity*pi**2*squares)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! A step of time, into `space`, which is to be transformed.
  subroutine decay()
    integer :: k

    !$omp parallel do schedule(static)
    do k = 1, edge(3)
      frequencies(:, :, k) = frequencies(:, :, k)*kept(:, :, k)
      space(:, :, k) = frequencies(:, :, k)
    end do
    !$omp end parallel do
  end subroutine

  ! All three directions in place; sign -1 into frequencies, 1 back (without the division by the number of values).
  subroutine transform(values, sign)
    complex(wp), intent(inout) :: values(:, :, :)
    integer, intent(in) :: sign
    complex(wp) :: roots_x(edge(1)/2), roots_y(edge(2)/2), roots_z(edge(3)/2)
    complex(wp), allocatable :: some(:, :), other(:, :)
    integer :: i, j, k

    call make_roots(roots_x, sign)
    call make_roots(roots_y, sign)
    call make_roots(roots_z, sign)

    !$omp parallel private(i, j, some, other)
    allocate (some(lines, maxval(edge)), other(lines, maxval(edge)))
    !$omp do schedule(static)
    do k = 1, edge(3)
      do j = 1, edge(2), lines
        some(:, 1:edge(1)) = transpose(values(:, j:j + lines - 1, k))
        call transform_lines(some(:, 1:edge(1)), other(:, 1:edge(1)), roots_x)
        values(:, j:j + lines - 1, k) = transpose(some(:, 1:edge(1)))
      end do
      do i = 1, edge(1), lines
        some(:, 1:edge(2)) = values(i:i + lines - 1, :, k)
        call transform_lines(some(:, 1:edge(2)), other(:, 1:edge(2)), roots_y)
        values(i:i + lines - 1, :, k) = some(:, 1:edge(2))
      end do
    end do
    !$omp end do
    !$omp do schedule(static)
    do j = 1, edge(2)
      do i = 1, edge(1), lines
        some(:, 1:edge(3)) = values(i:i + lines - 1, j, :)
        call transform_lines(some(:, 1:edge(3)), other(:, 1:edge(3)), roots_z)
        values(i:i + lines - 1, j, :) = some(:, 1:edge(3))
      end do
    end do
    !$omp end do
    deallocate (some, other)
    !$omp end parallel
  end subroutine

  pure subroutine make_roots(roots, sign)
    complex(wp), intent(out) :: roots(:)
    integer, intent(in) :: sign
    integer :: i

    do i = 1, size(roots)
      associate (angle => pi*real(i - 1, wp)/size(roots))
        roots(i) = cmplx(cos(angle), sign*sin(angle), wp)
      end associate
    end do
  end subroutine

  ! Stockham's transform of a power of two values, of many lines at once (the first index): each pass halves the
  ! stride of the pairs and leaves the values in order, so that none is sorted at the end.
  pure subroutine transform_lines(some, other, roots)
    complex(wp), contiguous, intent(inout) :: some(:, :), other(:, :)
    complex(wp), intent(in) :: roots(:)
    integer :: groups, length
    logical :: in_some

    groups = size(some, 2)/2
    length = 1
    in_some = .true.
    do while (groups >= 1)
      if (in_some) then
        call pass(some, other, groups, length, roots)
      else
        call pass(other, some, groups, length, roots)
      end if
      in_some = .not. in_some
      groups = groups/2
      length = 2*length
    end do
    if (.not. in_some) some = other
  end subroutine

  pure subroutine pass(from, to, groups, length, roots)
    complex(wp), contiguous, intent(in) :: from(:, :)
    complex(wp), contiguous, intent(inout) :: to(:, :)
    integer, intent(in) :: groups, length
    complex(wp), intent(in) :: roots(:)
    complex(wp) :: root
    integer :: group, within, low, high, line

    do group = 0, groups - 1
      root = roots(group*length + 1)
      do within = 1, length
        low = group*length + within
        high = low + groups*length
        do line = 1, size(from, 1)
          to(line, 2*group*length + within) = from(line, low) + from(line, high)
          to(line, (2*group + 1)*length + within) = root*(from(line, low) - from(line, high))
        end do
      end do
    end do
  end subroutine

  ! Of 1024 values that are spread over the grid.
  complex(wp) function checksum() result(total)
    integer :: j

    total = 0
    do j = 1, 1024
      total = total + space(modulo(j, edge(1)) + 1, modulo(3*j, edge(2)) + 1, modulo(5*j, edge(3)) + 1)
    end do
    total = total/product(real(edge, wp))
  end function
end module

program ft
  use, intrinsic :: iso_c_binding, only: c_int, c_long
  use omp_lib, only: omp_get_max_threads
  use app
  use nas_common
  use ft_grids
  implicit none

  ! By class: S, W, A, B.
  integer, parameter :: edges(3, 4) = reshape([64, 64, 64, 128, 128, 32, 256, 256, 128, 512, 256, 256], [3, 4])
  integer, parameter :: published_iterations(4) = [6, 6, 6, 20]
  ! Checksums by iteration and class.
  complex(wp), parameter :: checksums_s(6) = [ &
      (554.6087004964_wp, 484.5363331978_wp), (554.6385409189_wp, 486.5304269511_wp), &
      (554.6148406171_wp, 488.3910722336_wp), (554.5423607415_wp, 490.1273169046_wp), &
      (554.4255039624_wp, 491.7475857993_wp), (554.2683411902_wp, 493.2597244941_wp)]
  complex(wp), parameter :: checksums_w(6) = [ &
      (567.3612178944_wp, 529.3246849175_wp), (563.1436885271_wp, 528.2149986629_wp), &
      (559.402408997_wp, 527.0996558037_wp), (556.069804702_wp, 526.0027904925_wp), &
      (553.089899125_wp, 524.9400845633_wp), (550.4159734538_wp, 523.9212247086_wp)]
  complex(wp), parameter :: checksums_a(6) = [ &
      (504.6735008193_wp, 511.404790551_wp), (505.9412319734_wp, 509.8809666433_wp), &
      (506.9376896287_wp, 509.8144042213_wp), (507.7892868474_wp, 510.1336130759_wp), &
      (508.5233095391_wp, 510.4914655194_wp), (509.1487099959_wp, 510.7917842803_wp)]
  complex(wp), parameter :: checksums_b(20) = [ &
      (517.7643571579_wp, 507.7803458597_wp), (515.4521291263_wp, 508.8249431599_wp), &
      (514.6409228649_wp, 509.6208912659_wp), (514.2378756213_wp, 510.1023387619_wp), &
      (513.9626667737_wp, 510.3976610617_wp), (513.7423460082_wp, 510.5948019802_wp), &
      (513.5547056878_wp, 510.7404165783_wp), (513.3910925466_wp, 510.8576573661_wp), &
      (513.247070539_wp, 510.9577278523_wp), (513.1197729984_wp, 511.0460304483_wp), &
      (513.0070319283_wp, 511.12524338_wp), (512.9070537032_wp, 511.1968077718_wp), &
      (512.8182883502_wp, 511.2616233064_wp), (512.7393733383_wp, 511.3203605551_wp), &
      (512.669106202_wp, 511.3735928093_wp), (512.6064276004_wp, 511.4218460548_wp), &
      (512.550407657_wp, 511.465613976_wp), (512.500233172_wp, 511.5053595966_wp), &
      (512.4551951846_wp, 511.5415130407_wp), (512.4146770029_wp, 511.5744692211_wp)]
  complex(wp), parameter :: published(20, 4) = reshape([checksums_s, spread((0.0_wp, 0.0_wp), 1, 14), &
      checksums_w, spread((0.0_wp, 0.0_wp), 1, 14), checksums_a, spread((0.0_wp, 0.0_wp), 1, 14), checksums_b], [20, 4])
  real(wp), parameter :: tolerance = 1.0e-12_wp

  type(nas_run) :: run
  integer(c_long) :: iteration
  integer(c_int) :: verdict
  complex(wp) :: total

  run = nas_options("ft", published_iterations)
  call make_grids(edges(:, run%class), run%parallel_initialisation)
  call describe()
  call make_decay()
  call random_values()
  call transform(frequencies, -1)

  verdict = merge(app_successful, app_not_applicable, run%published_iterations)
  call app_iterations_begin(run%iterations)
  do iteration = 1, run%iterations
    call app_iteration_begin()
    call decay()
    call transform(space, 1)
    total = checksum()
    call app_iteration_end("checksum", total%re)
    if (run%published_iterations) call compare(total, int(iteration))
  end do
  call app_iterations_end()

  call app_result("checksum real", total%re)
  call app_result("checksum imaginary", total%im)
  call app_finish(verdict)

contains

  subroutine compare(total, iteration)
    complex(wp), intent(in) :: total
    integer, intent(in) :: iteration
    complex(wp) :: expected

    expected = published(iteration, run%class)
    if (abs(total - expected) > tolerance*abs(expected)) verdict = app_failed
  end subroutine

  subroutine describe()
    character(len=80) :: text

    write (text, "('class ', a, ', ', i0, ' x ', i0, ' x ', i0)") nas_classes(run%class:run%class), edge
    call app_describe(text, int(size(kept)*5_c_long*storage_size(kept)/8, c_long), run%initialisation, &
        int(omp_get_max_threads(), c_int))
  end subroutine
end program
