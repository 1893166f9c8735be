      subroutine step(k)
      integer k, i, n
      parameter (n = 40)
      real*8 a(n), b(n)
      common /blk/ a, b
c$homing distribute a(block), b(block)
c$omp parallel do
      do i = 2, n-1
        b(i) = a(i-1) + a(i+1) + k
      end do
c$omp parallel do
      do i = 1, n
        a(i) = 0.5d0*b(i)
      end do
      end
      program c
      integer n, i, k
      parameter (n = 40)
      real*8 a(n), b(n), s
      common /blk/ a, b
c$homing distribute a(block), b(block)
      do i = 1, n
        a(i) = i
        b(i) = 2*i
      end do
      do k = 1, 3
        call step(k)
      end do
      s = 0
      do i = 1, n
        s = s + a(i)
      end do
      print *, s
      end
