! A sparse matrix in compressed rows, and how all loops of CG and I-CG deal out its rows.
module sparse_rows
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  public :: set_rows, block_first, block_last, multiply_block, sum_in_order

  ! All loops over rows go over blocks of rows, and threads get blocks. Sums are built block by block and
  ! then added in the order of the blocks, so results have the same digits for any number of threads.
  integer, parameter, public :: rows_a_block = 64

  ! Compressed sparse rows: row i holds elements row_start(i) to row_start(i+1)-1.
  integer, public :: rows, blocks
  integer, allocatable, public :: row_start(:), column(:)
  real(real64), allocatable, public :: element(:)

contains

  subroutine set_rows(n)
    integer, intent(in) :: n

    rows = n
    blocks = (n + rows_a_block - 1)/rows_a_block
  end subroutine

  pure integer function block_first(block)
    integer, intent(in) :: block
    block_first = (block - 1)*rows_a_block + 1
  end function

  pure integer function block_last(block)
    integer, intent(in) :: block
    block_last = min(block*rows_a_block, rows)
  end function

  ! One block of rows of product = A * vector.
  pure subroutine multiply_block(block, vector, product)
    integer, intent(in) :: block
    real(real64), intent(in) :: vector(rows)
    real(real64), intent(inout) :: product(rows)
    integer :: row, k
    real(real64) :: total

    do row = block_first(block), block_last(block)
      total = 0
      do k = row_start(row), row_start(row + 1) - 1
        total = total + element(k)*vector(column(k))
      end do
      product(row) = total
    end do
  end subroutine

  ! A reduction clause would add in whatever order the threads arrive.
  pure real(real64) function sum_in_order(parts) result(total)
    real(real64), intent(in) :: parts(:)
    integer :: i

    total = 0
    do i = 1, size(parts)
      total = total + parts(i)
    end do
  end function
end module
