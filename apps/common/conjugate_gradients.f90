! The conjugate gradient method for A z = x, the kernel that CG and I-CG share.
!
! Every loop is a parallel region of its own, and all deal out blocks of rows by schedule(static): thread t
! uses the same part of row_start, column, element, x, z, p, q and r in every loop, except for the reads of
! p(column(k)) and z(column(k)) in the products.
module conjugate_gradients
  use, intrinsic :: iso_fortran_env, only: real64
  use app
  use sparse_rows
  implicit none
  private

  public :: make_vectors, cg_begin, cg_step, residual_norm

  real(real64), allocatable, public :: x(:), z(:), p(:), q(:), r(:)
  real(real64), allocatable, public :: part(:), other_part(:) ! sums of one block each
  real(real64), public :: rho                                 ! the square of the norm of r

contains

  subroutine make_vectors(parallel_initialisation)
    logical, intent(in) :: parallel_initialisation
    integer :: status

    allocate (x(rows), z(rows), p(rows), q(rows), r(rows), part(blocks), other_part(blocks), stat=status)
    if (status /= 0) call app_error("not enough memory for the vectors")
    ! The worksharing loop in zero_vectors binds to the region around it: called outside of one, the master
    ! thread touches everything.
    if (parallel_initialisation) then
      !$omp parallel
      call zero_vectors()
      !$omp end parallel
    else
      call zero_vectors()
    end if
  end subroutine

  ! First touch of the vectors.
  subroutine zero_vectors()
    integer :: block, row

    !$omp do schedule(static)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        x(row) = 0
        z(row) = 0
        p(row) = 0
        q(row) = 0
        r(row) = 0
      end do
      part(block) = 0
      other_part(block) = 0
    end do
    !$omp end do
  end subroutine

  ! Starts from z = 0.
  subroutine cg_begin()
    integer :: block, row

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      part(block) = 0
      do row = block_first(block), block_last(block)
        q(row) = 0
        z(row) = 0
        r(row) = x(row)
        p(row) = r(row)
        part(block) = part(block) + r(row)*r(row)
      end do
    end do
    !$omp end parallel do
    rho = sum_in_order(part)
  end subroutine

  subroutine cg_step()
    real(real64) :: rho_before, alpha, beta
    integer :: block, row

    !$omp parallel do schedule(static)
    do block = 1, blocks
      call multiply_block(block, p, q)
    end do
    !$omp end parallel do

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      part(block) = 0
      do row = block_first(block), block_last(block)
        part(block) = part(block) + p(row)*q(row)
      end do
    end do
    !$omp end parallel do
    alpha = rho/sum_in_order(part)

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      part(block) = 0
      do row = block_first(block), block_last(block)
        z(row) = z(row) + alpha*p(row)
        r(row) = r(row) - alpha*q(row)
        part(block) = part(block) + r(row)*r(row)
      end do
    end do
    !$omp end parallel do
    rho_before = rho
    rho = sum_in_order(part)
    beta = rho/rho_before

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        p(row) = r(row) + beta*p(row)
      end do
    end do
    !$omp end parallel do
  end subroutine

  ! || x - A z ||, with A z left in r.
  real(real64) function residual_norm() result(norm)
    integer :: block, row

    !$omp parallel do schedule(static)
    do block = 1, blocks
      call multiply_block(block, z, r)
    end do
    !$omp end parallel do

    !$omp parallel do schedule(static) private(row)
    do block = 1, blocks
      part(block) = 0
      do row = block_first(block), block_last(block)
        part(block) = part(block) + (x(row) - r(row))**2
      end do
    end do
    !$omp end parallel do
    norm = sqrt(sum_in_order(part))
  end function
end module
