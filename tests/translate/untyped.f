      PROGRAM OLD
      IMPLICIT REAL*8 (A-H, O-Z)
      PARAMETER (N = 25)
      DIMENSION A(0:N+1), B(0:N+1)
      REAL*8 C(N)
      EXTERNAL FUNC
C$HOMING DISTRIBUTE A(BLOCK), B(BLOCK),
C$HOMING& C(BLOCK)
      DO 5 I = 0, N + 1
      A(I) = FUNC(I)
    5 B(I) = 0
      DO 30 K = 1, 3
C$OMP PARALLEL DO
      DO 10 I = 1, N
        B(I) = (A(I-1) +
     &          A(I+1))*.5D0
   10 CONTINUE
C$OMP PARALLEL DO
C$HOMING ON HOME(A(I))
      DO 20 I = 1, N
        IF (B(I) .GT. 3.D0) THEN
          A(I) = B(I)
        ELSE
          A(I) = -B(I)
        END IF
   20 CONTINUE
   30 CONTINUE
C$OMP PARALLEL DO
      DO I = 1, N
        C(I) = I
      ENDDO
      WRITE (*, 100) A(3), B(4), C(N)
  100 FORMAT (3F12.6)
      STOP
      END
      DOUBLE PRECISION FUNCTION FUNC(I)
      FUNC = MOD(I*7, 11)
      RETURN
      END
