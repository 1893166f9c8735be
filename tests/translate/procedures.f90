! Loops that become internal procedures, and loops that must stay. DIST is replaced.
module tools
  implicit none
  type pair
    real(8) :: p, q
  end type
contains
  real(8) function work(n, x, y)
    integer, intent(in) :: n
    real(8), intent(inout) :: x(0:n+1, 0:n+1), y(0:n+1, 0:n+1)
    integer :: i, j, k
    real(8) :: w(3), v(0:2), s, c
    real(8) :: weight
    real(8), external :: twice
    real(8) :: thrice
    external thrice
    real(8) :: four_times
    real(8), allocatable :: z(:)
    type(pair) :: t
    character(4) :: name
    common /shared/ c
    weight = 0.125d0
    s = 0
    c = 2
    work = 1
    allocate (z(2))
    z = 1
    ! Moves: private arrays and components, a reduction, a continued line.
!$omp parallel do private(i, w, t) firstprivate(z) reduction(+:s)
    do j = 1, n ! a comment
      do i = 1, n
        w = [real(8) :: i, j, 1]; t%p = w(1); t%q = w(2)*z(1)
        y(i, j) = x(i - 1, j) + x(i + 1, j) + &
          x(i, j - 1)*weight + t%p + t%q
        s = s + int(y(i, j))
      end do
    end do
!$omp parallel private(v, k)
    v = 0.5d0
    k = 7
    outer: do k = 1, 2
    ! Stays: the length of a character.
!$omp do private(i, name)
    do j = 1, n
      name = 'ab'
      do i = 1, n
        x(i, j) = y(i, j)*v(1) + len_trim(name)
      end do
    end do
!$omp end do
    ! Stays: thrice has its type here.
!$omp do
    named: do j = n, 1, -1
      do i = 1, n
        if (i == 3) cycle
        x(i, j) = y(i, j)*v(2) + k + twice(1d0*i) + thrice(1d0)
      end do
    end do named
    end do outer
    ! Both stay: names of a construct.
    block
      real(8) :: inner
      inner = v(0)
!$omp do
      do j = 1, n
        y(1:n, j) = x(1:n, j) + inner
      end do
    end block
    associate (u => weight)
!$omp do
      do j = 1, n
        y(1:n, j) = x(1:n, j) + u + y(1:n, j)
      end do
    end associate
    ! Moves: a loop in a region, without a function.
!$omp do private(i)
    do j = 1, n
      do i = 1, n
        y(i, j) = y(i, j)*v(0) + k + x(i, j)
      end do
    end do
!$omp do private(i)
    do j = 1, n
      do i = 1, n
        y(i, j) = x(i, j)*0.5d0 + four_times(1d0*i)
      end do
    end do
!$omp end parallel
    ! Stays: a procedure may use the same variables.
!$omp parallel do private(i)
    do j = 1, n
      do i = 1, n
        y(i, j) = x(i, j)*0.5d0 + one(i)
      end do
    end do
    ! Both stay: what is private is not named.
!$omp parallel do private(i, /shared/)
    do j = 1, n
      c = j
      do i = 1, n
        y(i, j) = x(i, j)*0.25d0 + c
      end do
    end do
!$omp parallel do default(private) shared(x, y, n)
    do j = 1, n
      do i = 1, n
        s = i + j
        y(i, j) = x(i, j)*0.25d0 + s + y(i, j)
      end do
    end do
    ! Both move.
!$omp parallel do private(i)
    do j = 1, n; do i = 1, n
      y(i, j) = x(i, j)*0.25d0 + y(i, j); end do; end do
!$omp parallel do private(i)
    do 10 j = 1, n
      do 10 i = 1, n
        continue
        y(i, j) = x(i, j)*0.25d0 + y(i, j)
10  continue
    work = s + c
  contains
    real(8) function one(i)
      integer, intent(in) :: i
      one = i*weight
    end function
  end function
end module
program procedures
  use tools
  implicit none
  integer :: n, i, j
  real(8), allocatable :: x(:,:), y(:,:)
  character(16) :: word
!$homing distribute (DIST) :: x, y
  call get_command_argument(1, word)
  read (word, *) n
  allocate (x(0:n+1,0:n+1), y(0:n+1,0:n+1))
!$omp parallel do
  do j = 0, n+1
    do i = 0, n+1
      x(i,j) = sin(real(i*i + 3*j, 8))
      y(i,j) = 0
    end do
  end do
  print *, work(n, x, y)
  do j = 0, n+1
    print '(*(z17))', x(:,j), y(:,j)
  end do
end program
real(8) function twice(a)
  real(8), intent(in) :: a
  twice = 2*a
end function
real(8) function thrice(a)
  real(8), intent(in) :: a
  thrice = 3*a
end function
real(8) function four_times(a)
  real(8), intent(in) :: a
  four_times = 4*a
end function
