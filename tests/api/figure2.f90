! The calls of the UPMlib paper's Figure 2, as printed: without an interface. z_solve uses the pages of rhs from other
! threads than the rest of the step. Printed: pages of rhs that lie elsewhere within z_solve than before the step, and
! those that do after it.
program figure2
  use homing, only: homing_where
  use, intrinsic :: iso_c_binding, only: c_int, c_long, c_size_t
  implicit none
  integer, parameter :: n = 64, niter = 8
  real(8), allocatable, target :: u(:,:,:,:), rhs(:,:,:,:)
  integer(c_int), allocatable :: before(:), now(:)
  integer :: step, size_of, k, in_phase, behind
  external :: upmlib_init, upmlib_memrefcnt, upmlib_record, upmlib_replay, upmlib_undo
  allocate (u(5, n, n, n), rhs(5, n, n, n))
  !$omp parallel do schedule(static)
  do k = 1, n
    u(:, :, :, k) = 1
    rhs(:, :, :, k) = 0
  end do
  size_of = 8*5*n**3
  allocate (before(size_of/4096 + 1), now(size_of/4096 + 1))
  call upmlib_init()
  call upmlib_memrefcnt(u, size_of)
  call upmlib_memrefcnt(rhs, size_of)
  before = -1
  k = int(homing_where(rhs, int(size_of, c_size_t), before, size(before, kind=c_size_t)))
  do step = 1, niter
    call compute_rhs
    call x_solve
    call y_solve
    if (step .eq. 1) then
      call upmlib_record()
    else
      call upmlib_replay()
    end if
    in_phase = moved()
    call z_solve
    if (step .eq. 1) then
      call upmlib_record()
    else
      call upmlib_undo()
    end if
    behind = moved()
    call add
    print '(a,i0,a,i0,a,i0)', 'step ', step, ': ', in_phase, ' then ', behind
  end do
  print '(a,f20.6)', 'sum ', sum(u)
contains
  integer function moved()
    integer(c_long) :: pages
    now = -1
    pages = homing_where(rhs, int(size_of, c_size_t), now, size(now, kind=c_size_t))
    moved = count(now(1:min(int(pages), size(now))) /= before(1:min(int(pages), size(now))))
  end function
  subroutine compute_rhs
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, n
      rhs(:, :, :, k) = 0.5d0 - 0.1d0*u(:, :, :, k)
    end do
  end subroutine
  subroutine x_solve
    integer :: i, k
    !$omp parallel do schedule(static) private(i)
    do k = 1, n
      do i = 2, n
        rhs(:, i, :, k) = rhs(:, i, :, k) + 0.1d0*rhs(:, i - 1, :, k)
      end do
    end do
  end subroutine
  subroutine y_solve
    integer :: j, k
    !$omp parallel do schedule(static) private(j)
    do k = 1, n
      do j = 2, n
        rhs(:, :, j, k) = rhs(:, :, j, k) + 0.1d0*rhs(:, :, j - 1, k)
      end do
    end do
  end subroutine
  subroutine z_solve
    integer :: j, k
    !$omp parallel do schedule(static) private(k)
    do j = 1, n
      do k = 2, n
        rhs(:, :, j, k) = rhs(:, :, j, k) + 0.1d0*rhs(:, :, j, k - 1)
      end do
    end do
  end subroutine
  subroutine add
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, n
      u(:, :, :, k) = u(:, :, :, k) + 0.01d0*rhs(:, :, :, k)
    end do
  end subroutine
end program
