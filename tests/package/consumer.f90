! The Fortran module as a program of somebody's would use it: arrays of any type and rank.
program consumer
  use homing
  use, intrinsic :: iso_c_binding, only: c_size_t
  implicit none
  double precision, allocatable :: field(:, :)
  integer, allocatable :: list(:)
  type(homing_statistics_t) :: statistics
  logical :: well

  allocate (field(256, 256), list(65536))
  field = 1
  list = 1
  well = homing_version() >= 200
  well = well .and. answered(homing_watch(field, int(8*size(field), c_size_t), 'field'))
  well = well .and. answered(homing_watch(list, int(4*size(list), c_size_t), 'list'))
  well = well .and. answered(homing_iteration())
  well = well .and. homing_statistics(statistics) == homing_ok
  call upmlib_init()
  call upmlib_memrefcnt(field, 8*size(field))
  call upmlib_migrate_memory()
  well = well .and. answered(homing_unwatch(field)) .and. answered(homing_unwatch(list))
  if (.not. well) error stop 'consumer: homing did not answer as homing.h says'
  print '(a)', 'consumer: well'

contains

  logical function answered(status)
    integer, intent(in) :: status
    answered = status >= homing_ok .or. status == homing_aside
  end function

end program consumer
