! The calls of the UPMlib paper's Figure 1, as printed: without an interface, on arrays of several ranks.
program figure1
  implicit none
  integer, parameter :: n = 64, niter = 20
  real(8), allocatable :: u(:,:,:,:), rhs(:,:,:,:), forcing(:,:,:,:)
  integer :: step, size
  external :: upmlib_init, upmlib_memrefcnt, upmlib_migrate_memory
  allocate (u(5, n, n, n), rhs(5, n, n, n), forcing(5, n, n, n))
  u = 1; rhs = 0; forcing = 0.5d0
  size = 8*5*n**3
  call upmlib_init()
  call upmlib_memrefcnt(u, size)
  call upmlib_memrefcnt(rhs, size)
  call upmlib_memrefcnt(forcing, size)
  do step = 1, niter
    call compute_rhs
    call add
    call upmlib_migrate_memory()
  end do
  print '(a,f20.6)', 'sum ', sum(u)
contains
  subroutine compute_rhs
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, n
      rhs(:, :, :, k) = forcing(:, :, :, k)*2
    end do
  end subroutine
  subroutine add
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, n
      u(:, :, :, k) = u(:, :, :, k) + rhs(:, :, :, k)
    end do
  end subroutine
end program
