C     BLOCK DATA that names a block with distributed arrays, and gives others their values.
      PROGRAM BD
      INTEGER N
      PARAMETER (N=20)
      REAL*8 A(N), B(N), C0
      INTEGER KFLAG(3)
      COMMON /FLD/ A, B
      COMMON /CST/ C0, KFLAG
C$HOMING DISTRIBUTE A(BLOCK), B(BLOCK)
      INTEGER I
C$OMP PARALLEL DO
      DO 10 I = 1, N
        A(I) = I*C0
        B(I) = KFLAG(2)
   10 CONTINUE
C$OMP PARALLEL DO
C$HOMING ON HOME(B(I))
      DO 20 I = 2, N
        B(I) = A(I-1) + B(I)
   20 CONTINUE
      PRINT *, B
      END
      BLOCK DATA
      INTEGER N
      PARAMETER (N=20)
      REAL*8 A(N), B(N), C0
      INTEGER KFLAG(3)
      COMMON /FLD/ A, B
      COMMON /CST/ C0, KFLAG
      DATA C0 /1.5D0/, KFLAG /1, 2, 3/
      END
