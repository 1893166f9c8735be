! Its array is distributed where homing's translator is the compiler; to a compiler that is a comment.
program sum_of_a_part
    implicit none
    integer, parameter :: n = 65536
    real(kind(1d0)) :: x(n), total
    integer :: i
!$homing distribute x(block)
    total = 0
!$omp parallel do
    do i = 1, n
        x(i) = i - 1
    end do
!$omp parallel do reduction(+:total)
    do i = 1, n
        total = total + x(i)
    end do
    print '(a, i0)', 'sum ', nint(total, kind=8)
end program sum_of_a_part
