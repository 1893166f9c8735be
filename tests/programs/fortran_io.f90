! Fortran input and output of whole arrays from inside regions: stream files and internal files.
program fortran_io
    use omp_lib
    implicit none
    integer, parameter :: n = 131072
    double precision, allocatable :: a(:), b(:)
    double precision :: total, s
    integer :: i, k, unit, ios
    character(len=40) :: text
    allocate (a(n), b(n))
    a = [(dble(k), k=1, n)]
    b = 0.0d0
    total = 0.0d0
    do i = 1, 36
        s = 0.0d0
        !$omp parallel do
        do k = 1, n
            a(k) = mod(a(k) * 3.0d0 + dble(i), 65521.0d0)
        end do
        !$omp end parallel do
        !$omp parallel do reduction(+:s)
        do k = 1, n
            b(k) = mod(b(k) + a(k), 65521.0d0)
            s = s + b(k)
        end do
        !$omp end parallel do
        total = mod(total * 31.0d0 + s, 1.0d12)
        if (mod(i, 3) == 0) then
            !$omp parallel num_threads(3) private(unit, ios, text, k) reduction(+:s)
            open (newunit=unit, status='scratch', form='unformatted', access='stream', iostat=ios)
            write (unit, iostat=ios) a
            if (omp_get_thread_num() == 0) then
                rewind (unit)
                read (unit, iostat=ios) b
                s = s + b(n)
            end if
            close (unit)
            write (text, '(f20.1)') a(omp_get_thread_num() * 1000 + 1)
            read (text, *) s
            !$omp end parallel
            do k = 1, n
                if (b(k) /= a(k)) then
                    write (*, *) 'wrong: data read back', k
                    stop 1
                end if
            end do
        end if
    end do
    write (*, '(a, f20.1)') 'total', total
end program fortran_io
