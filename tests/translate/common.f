C     Distributed arrays of COMMON blocks that all name alike, beside what is not distributed, in fixed form:
C     bounds of PARAMETERs, types before and in the block, an array of the blank block, a procedure that
C     names a block without directives, and others that do so with parallel loops.
      PROGRAM COMMON
      IMPLICIT REAL*8 (A-H, O-Z)
      PARAMETER (N=12, M=2*N/3)
      REAL*8 A(N,N), B(N,N)
      COMMON /GRID/ A, STEP, B, NSTEPS
      INTEGER LAST
      COMMON LAST, V(0:N+1)
C$DISTRIBUTE A(*,BLOCK), B(*,BLOCK)
C$DISTRIBUTE V(CYCLIC)
      NSTEPS = 3
      STEP = 0.5D0
      LAST = N + 1
      CALL START
      DO 20 K=1,NSTEPS
      CALL RELAX
C$OMP PARALLEL DO
      DO 10 J=1,N
   10 V(J) = V(J) + M*STEP
   20 CONTINUE
      CALL BACK
      TOTAL = 0
C$OMP PARALLEL DO REDUCTION(+:TOTAL)
      DO 30 J=1,N
   30 TOTAL = TOTAL + V(J)
      PRINT *, TOTAL
      CALL SHOW
      END
      SUBROUTINE START
      REAL*8 A(12,12), B(12,12), STEP, V
      COMMON /GRID/ A, STEP, B, NSTEPS
      COMMON LAST, V(0:13)
      DO 10 J=1,12
      DO 10 I=1,12
      A(I,J) = MOD(I*J, 7)
   10 B(I,J) = 0
      DO 20 I=0,LAST
   20 V(I) = I
      END
      SUBROUTINE RELAX
      PARAMETER (N=12)
      REAL*8 A, B, STEP
      COMMON /GRID/ A(N,N), STEP, B(N,N), NSTEPS
C$DISTRIBUTE A(*,BLOCK), B(*,BLOCK)
C$OMP PARALLEL DO
C$OMP+PRIVATE(I)
      DO 10 J=2,N-1
      DO 10 I=2,N-1
   10 B(I,J) = A(I,J-1) + A(I,J+1) + A(I-1,J) - STEP*A(I,J)
C$OMP PARALLEL DO PRIVATE(I)
      DO 20 J=2,N-1
      DO 20 I=2,N-1
   20 A(I,J) = B(I,J)/4
      END
      SUBROUTINE BACK
      REAL*8 A, B, STEP
      COMMON /GRID/ A(12,12), STEP, B(12,12), NSTEPS
C$OMP PARALLEL
C$OMP DO PRIVATE(I)
      DO 10 J=1,12
      DO 10 I=1,12
   10 A(I,J) = A(I,J) + B(I,J)
C$OMP END PARALLEL
      END
      SUBROUTINE SHOW
      REAL*8 A(12,12), B(12,12), STEP, V(0:13)
      COMMON /GRID/ A, STEP, B, NSTEPS
      COMMON LAST, V
      PRINT '(6F10.4)', A, V
      PRINT *, STEP, NSTEPS, LAST, SUM(B)
      END
