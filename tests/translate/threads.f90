! AFFINITY(...) = THREAD(...): in a region without distributed arrays, and in one with. Counts iterations on other threads.
program threads
  use omp_lib
  implicit none
  integer :: n, i, elsewhere
  integer, allocatable :: twice(:)
  real(8), allocatable :: x(:)
  character(16) :: word
!$homing distribute x(block)
  call get_command_argument(1, word)
  read (word, *) n
  allocate(x(n), twice(n))
  twice = 0
  elsewhere = 0
!$omp parallel do reduction(+:elsewhere)
!$homing affinity(i) = thread(i/2)
  do i = 1, n
    twice(i) = i*2
    if (omp_get_thread_num() /= mod(i/2, omp_get_num_threads())) elsewhere = elsewhere + 1
  end do
!$omp parallel
!$omp do
  do i = 1, n
    x(i) = i
  end do
!$omp do reduction(+:elsewhere)
!$homing affinity(i) = thread(-i)
  do i = 1, n
    if (omp_get_thread_num() /= modulo(-i, omp_get_num_threads())) elsewhere = elsewhere + 1
    if (i == 3) cycle
    twice(i) = twice(i) + 1
  end do
!$omp end do
!$omp end parallel
  print *, elsewhere, twice, x
end program
