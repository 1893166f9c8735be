! Every kind of Fortran array in an iterative program: module, COMMON, SAVE, allocatable, automatic, pointer;
! and a reallocation on assignment in the middle. All values are whole numbers: sums do not depend on their order.
module fields
    implicit none
    integer, parameter :: n = 131072
    double precision :: density(n), velocity(n, 2)
    double precision, allocatable :: pressure(:)
end module fields

subroutine kept(i, total)
    implicit none
    integer, intent(in) :: i
    double precision, intent(inout) :: total
    integer, parameter :: m = 131072
    double precision, save :: history(m) = 0.0d0
    integer :: k
    double precision :: s
    s = 0.0d0
    !$omp parallel do reduction(+:s)
    do k = 1, m
        history(k) = mod(history(k) * 3.0d0 + dble(k + i), 1048573.0d0)
        s = s + history(k)
    end do
    !$omp end parallel do
    total = mod(total * 31.0d0 + s, 1.0d12)
end subroutine kept

subroutine automatic(m, i, total)
    implicit none
    integer, intent(in) :: m, i
    double precision, intent(inout) :: total
    double precision :: work(m)
    integer :: k
    double precision :: s
    s = 0.0d0
    !$omp parallel
    !$omp do
    do k = 1, m
        work(k) = mod(dble(k) * dble(i + 7), 65521.0d0)
    end do
    !$omp end do
    !$omp do reduction(+:s)
    do k = 1, m
        s = s + work(m + 1 - k)
    end do
    !$omp end do
    !$omp end parallel
    total = mod(total * 31.0d0 + s, 1.0d12)
end subroutine automatic

program arrays
    use fields
    implicit none
    double precision :: shared_one(131072), shared_two(131072)
    common /blk/ shared_one, shared_two
    double precision, pointer :: pointed(:)
    double precision, allocatable :: grows(:)
    double precision :: total, s
    integer :: i, k
    allocate (pressure(n), pointed(n))
    do k = 1, n
        density(k) = dble(k)
        velocity(k, 1) = dble(mod(k, 1000))
        velocity(k, 2) = 0.0d0
        pressure(k) = dble(mod(k, 17))
        pointed(k) = 0.0d0
        shared_one(k) = 1.0d0
        shared_two(k) = 2.0d0
    end do
    total = 0.0d0
    grows = [1.0d0]
    do i = 1, 40
        !$omp parallel do
        do k = 1, n
            density(k) = mod(density(k) * 5.0d0 + velocity(k, 1), 1048573.0d0)
            velocity(k, 2) = density(k) + pressure(k)
        end do
        !$omp end parallel do
        !$omp parallel do
        do k = 2, n
            pressure(k) = mod(velocity(k - 1, 2) + velocity(k, 2), 1048573.0d0)
            pointed(k) = pressure(k) + shared_one(k)
        end do
        !$omp end parallel do
        s = 0.0d0
        !$omp parallel do reduction(+:s)
        do k = 1, n
            shared_one(k) = mod(shared_one(k) + shared_two(k), 997.0d0)
            shared_two(k) = mod(pointed(k), 101.0d0)
            s = s + shared_one(k) + pointed(k)
        end do
        !$omp end parallel do
        total = mod(total * 31.0d0 + s, 1.0d12)
        call kept(i, total)
        call automatic(40000, i, total)
        if (mod(i, 5) == 0) then
            grows = [grows, pressure(1:20000)]
            deallocate (pressure)
            allocate (pressure(n))
            pressure = 3.0d0
        end if
    end do
    write (*, '(a, f20.1, i8)') 'total', total, size(grows)
    deallocate (pressure, pointed)
end program arrays
