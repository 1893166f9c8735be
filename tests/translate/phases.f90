! The shape of NAS BT: z_solve goes along another dimension than the rest (UPMlib paper, Figure 2).
program bt
  implicit none
  integer, parameter :: n = 40
  integer :: step, niter = 3
  real(8) :: u(n,n,n), rhs(n,n,n)
  u = 1
  rhs = 0
  do step = 1, niter
    call x_solve
    call y_solve
    call z_solve
    call add
  end do
  print *, u(3,4,5)
contains
  subroutine x_solve
    integer :: i, j, k
!$omp parallel do private(i,j)
    do k = 1, n
      do j = 1, n
        do i = 2, n
          rhs(i,j,k) = rhs(i-1,j,k)*0.1d0 + u(i,j,k)
        end do
      end do
    end do
  end subroutine
  subroutine y_solve
    integer :: i, j, k
!$omp parallel do private(i,j)
    do k = 1, n
      do j = 2, n
        do i = 1, n
          rhs(i,j,k) = rhs(i,j-1,k)*0.1d0 + u(i,j,k)
        end do
      end do
    end do
  end subroutine
  subroutine z_solve
    integer :: i, j, k
!$omp parallel do private(i,k)
    do j = 1, n
      do k = 2, n
        do i = 1, n
          rhs(i,j,k) = rhs(i,j,k-1)*0.1d0 + u(i,j,k)
        end do
      end do
    end do
  end subroutine
  subroutine add
    integer :: i, j, k
!$omp parallel do private(i,j)
    do k = 1, n
      do j = 1, n
        do i = 1, n
          u(i,j,k) = u(i,j,k) + rhs(i,j,k)*0.01d0
        end do
      end do
    end do
  end subroutine
end program
