      program imp
      parameter (n = 30)
      dimension a(n), b(n)
      double precision a, b, s
c$homing distribute a(block), b(block)
      do 10 i = 1, n
      a(i) = i
   10 b(i) = 0
c$omp parallel do
      do 20 i = 2, n-1
      if (a(i)-5.) 11, 12, 13
   11 b(i) = a(i-1)
      goto 20
   12 b(i) = a(i)
      goto 20
   13 b(i) = a(i+1)
   20 continue
      s = 0.
      do 30 i = 1, n
   30 s = s + b(i)
      write(6,100) s
  100 format(f12.4)
      end
