program aa
  implicit none
  real(8), allocatable :: u(:, :), t(:), w(:)
  integer :: j, k, s
  !$homing distribute u(*, block)
  !$homing distribute t(cyclic)
  do k = 4, 9, 5
    if (allocated(u)) deallocate (u)
    if (k > 3 .and. .not. allocated(u)) allocate (u(k, 0:k + 1), w(k), stat=s)
    If (.not. Allocated( t )) Allocate (t(20))
    !$omp parallel do
    do j = 0, k + 1
      u(:, j) = j*k
    end do
    !$omp parallel do
    do j = 1, 20
      t(j) = k + j
    end do
    print *, sum(u), sum(t), size(u), size(w), s
    if (allocated(u)) deallocate (w, u)
  end do
  if (allocated(t)) print *, 'yes'
end program
