! Locality queues from Fortran: a procedure works on blocks, taken by the threads of a team, and what is left.
module work_on_blocks
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: blocks = 64
contains
  ! `data` is an array of how often each block was worked on.
  subroutine count_block(block, data) bind(c)
    integer(c_intptr_t), value :: block
    type(c_ptr), value :: data
    integer(c_int), pointer :: times(:)
    call c_f_pointer(data, times, [blocks])
    !$omp atomic
    times(block) = times(block) + 1
  end subroutine
end module

program queues_test
  use homing
  use work_on_blocks
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), target :: times(blocks)
  type(c_ptr) :: queues
  integer(c_intptr_t) :: block
  integer :: i, worked
  integer(c_size_t) :: left
  times = 0
  queues = homing_queues_create('blocks', homing_by_node)
  do block = 1, blocks
    if (homing_queues_put(queues, block, homing_anywhere) /= homing_ok) stop 1
  end do
  worked = 0
  !$omp parallel do reduction(+: worked)
  do i = 1, blocks/2
    worked = worked + homing_queues_run(queues, count_block, c_loc(times))
  end do
  left = homing_queues_drain(queues, count_block, c_loc(times))
  if (any(times /= 1)) stop 2
  if (homing_queues_run(queues, count_block, c_loc(times)) /= 0) stop 3
  if (homing_queues_destroy(queues) /= homing_ok) stop 4
  print '(i0,1x,i0)', worked, left
end program
