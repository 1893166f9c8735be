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
