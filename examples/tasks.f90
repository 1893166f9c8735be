! Locality queues from Fortran: blocks are columns.
!   gfortran -O2 -fopenmp tasks.f90 -lhoming_fortran -lhoming   (-I where homing.mod is: include/homing/fortran)
!   homing cc gfortran -O2 -fopenmp tasks.f90 -lhoming
program tasks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_intptr_t, c_size_t, c_associated
  use homing
  implicit none
  integer, parameter :: blocks = 500, length = 10000
  real(kind(1d0)), allocatable :: field(:, :), sums(:)
  type(c_ptr) :: queues
  integer(c_intptr_t) :: block
  integer :: task, column, status

  allocate (field(length, blocks), sums(blocks))
  !$omp parallel do schedule(static)
  do column = 1, blocks
    field(:, column) = 1
    sums(column) = 0
  end do
  queues = homing_queues_create('field', homing_by_node)
  if (.not. c_associated(queues)) error stop 'no memory'
  do column = 1, blocks
    status = homing_queues_put_at(queues, int(column, c_intptr_t), field(:, column), int(8*length, c_size_t))
    if (status /= homing_ok) error stop 'not queued'
  end do
  !$omp parallel
  !$omp single
  do task = 1, blocks
    !$omp task private(block) shared(queues, field, sums)
    if (homing_queues_take(queues, block) == 1) sums(block) = sum(field(:, block))
    !$omp end task
  end do
  !$omp end single
  !$omp end parallel
  print '(a,f0.0)', 'sum ', sum(sums)
  if (homing_queues_destroy(queues) /= homing_ok) error stop 'blocks are left'
  if (nint(sum(sums)) /= blocks*length) error stop 'wrong sum'
end program
