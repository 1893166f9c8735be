! Tasks and nested regions in Fortran, and a STOP with a status from serial code in the end.
program fortran_tasks
    use omp_lib
    implicit none
    integer, parameter :: n = 131072
    double precision, allocatable :: a(:), b(:)
    double precision :: total, s, part
    integer :: i, k
    call omp_set_max_active_levels(2)
    allocate (a(n), b(n))
    a = 1.0d0
    b = 2.0d0
    total = 0.0d0
    do i = 1, 40
        !$omp parallel num_threads(3)
        !$omp single
        ! constant parts: flang 19 gives a firstprivate loop variable to a task too late
        !$omp task shared(a, b)
        a(1:n / 4) = mod(a(1:n / 4) * 3.0d0 + b(1:n / 4) + 1.0d0, 65521.0d0)
        !$omp end task
        !$omp task shared(a, b)
        a(n / 4 + 1:n / 2) = mod(a(n / 4 + 1:n / 2) * 3.0d0 + b(n / 4 + 1:n / 2) + 2.0d0, 65521.0d0)
        !$omp end task
        !$omp task shared(a, b)
        a(n / 2 + 1:n) = mod(a(n / 2 + 1:n) * 3.0d0 + b(n / 2 + 1:n) + 3.0d0, 65521.0d0)
        !$omp end task
        !$omp end single
        !$omp end parallel
        s = 0.0d0
        !$omp parallel num_threads(2) private(part) reduction(+:s)
        part = 0.0d0
        !$omp parallel do num_threads(2) reduction(+:part)
        do k = 1, n
            part = part + a(k)
        end do
        !$omp end parallel do
        s = s + part
        !$omp end parallel
        !$omp parallel workshare
        b = a
        !$omp end parallel workshare
        !$omp parallel sections
        !$omp section
        b(1:n / 2) = b(1:n / 2) + 1.0d0
        !$omp section
        b(n / 2 + 1:n) = b(n / 2 + 1:n) + 2.0d0
        !$omp end parallel sections
        total = mod(total * 31.0d0 + s, 1.0d12)
    end do
    write (*, '(a, f20.1)') 'total', total
    stop 3
end program fortran_tasks
