      program p
      implicit none
      integer n
      parameter (n = 48)
      integer i, j, it
      double precision u(n,n), v(n,n), s, eps
      common /grid/ u, v
      data eps /1d-3/
c$homing distribute u(*,block), v(*,block)
c$omp parallel do private(i)
      do 10 j = 1, n
      do 10 i = 1, n
      u(i,j) = i*j
   10 v(i,j) = 0
      it = 0
   20 continue
      it = it + 1
c$omp parallel do private(i)
      do 30 j = 2, n - 1
         do 30 i = 2, n - 1
            v(i,j) = (u(i-1,j) + u(i+1,j) + u(i,j-1) + u(i,j+1))/4
     &             + eps
   30 continue
      s = 0
c$omp parallel do private(i) reduction(+:s)
      do 40 j = 2, n - 1
         do 40 i = 2, n - 1
            s = s + (v(i,j) - u(i,j))**2
            u(i,j) = v(i,j)
   40 continue
      if (sqrt(s) .lt. 1d-2 .or. it .ge. 20) go to 50
      if (u(3,3) .gt. 1d6) stop
      goto 20
   50 write (*, 100) it, u(5,5), v(10,10)
  100 format (i5, 2f14.6)
      if (u(1,1) - 100d0) 60, 70, 70
   60 write (*, *) 'less'
      goto 80
   70 write (*, *) 'more'
   80 continue
      call out
      call ways
      end
      subroutine out
      implicit none
      integer n, i
      parameter (n = 48)
      double precision u(n,n), v(n,n)
      common /grid/ u, v
      do 10 i = 1, n, 7
         if (u(i,i) .lt. 30d0) then
            print *, i, u(i,i)
            if (i .gt. 20) return
         endif
   10 continue
      end
      subroutine ways
      implicit none
      integer n, i, k
      parameter (n = 9)
      real a(n)
c$homing distribute a(block)
      open (unit=11, status='scratch')
      write (11, *) 1.5, 2.5
      write (11, '(a)') 'no number'
      write (11, *) 3.5
      rewind 11
      k = 0
      do 5 i = 1, n
    5 a(i) = 0.
   10 k = k + 1
c$omp parallel do
      do 20 i = 1, n
         a(i) = a(i) + k
   20 continue
      if (k .le. 2) then
         read (11, *, err = 50, end=60) a(1)
         a(2) = a(1)
      end if
      if (k .eq. 3) read (11, '(f8.0)', err=50, end=60) a(3), a(4)
      if (k .gt. 9) then
         a(9) = a(9) + 1
         go to (65, 66), k - 10
      endif
      go to (70, 80, 70, 90), k - 4
      write (*, *) 'k', k, a(1), a(2), a(3)
      if (k .lt. 13) go to 10
      return
   50 write (*, *) 'error', k, a(5)
      go to 10
   60 write (*, *) 'end', k, a(6)
      go to 10
   65 write (*, *) 'first', a(9)
      go to 10
   66 write (*, *) 'second', a(9)
      go to 10
   70 call test(a, n, *85, *90)
      write (*, *) 'returned', a(1)
      goto 10
   80 if (a(7) - 21.) 85, 86, 90
   85 write (*, *) 'below'
      goto 10
   86 write (*, *) 'equal', a(7)
      goto 10
   90 write (*, *) 'above', (a(i), i = 1, n, 4)
      goto 10
      end
      subroutine test(b, m, *, *)
      integer m
      real b(m)
      if (b(m) .lt. 20.) return 1
      if (b(m) .gt. 26.) return 2
      end
