! The Fortran module: arrays of any type and rank.
program module_test
  use homing
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: n = 512
  real(8), allocatable :: a(:,:)
  integer(c_int), allocatable :: nodes(:)
  type(homing_statistics_t) :: statistics
  integer(c_size_t) :: bytes
  integer :: step, j
  real(8), save :: kept(n, n) = 0
  type(c_ptr) :: queues
  allocate (a(n, n), nodes(1024))
  a = 0
  bytes = 8_c_size_t*n*n
  if (homing_watch(a, bytes, 'matrix') /= homing_ok) stop 1
  call upmlib_memrefcnt(a, 8*n*n)
  call upmlib_memrefcnt(a, bytes)
  if (homing_watch(kept, bytes, '') /= homing_ok) stop 6
  if (homing_watch_hot(kept, bytes, '   ') /= homing_ok) stop 7
  queues = homing_queues_create('', homing_by_node)
  if (homing_queues_put(queues, 1_c_intptr_t, homing_anywhere) /= homing_ok) stop 8
  if (homing_queues_destroy(queues) /= homing_not_empty) stop 9
  if (homing_where(a, bytes, nodes, 1024_c_size_t) < 500) stop 2
  do step = 1, 10
    !$omp parallel do schedule(static)
    do j = 1, n
      a(:, j) = a(:, j) + j
    end do
    if (homing_iteration() < homing_aside) stop 3
  end do
  if (homing_statistics(statistics) /= homing_ok) stop 4
  if (homing_place_round_robin(a, bytes) /= homing_ok) stop 5
  print '(a,i0)', 'active ', statistics%active
  print '(a,f14.1)', 'sum ', sum(a)
end program
