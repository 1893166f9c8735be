C     One distributed array for two arguments that a procedure does not change: functions and a subroutine
C     outside of modules, one of a module with assumed shapes; names far to the right get longer.
      MODULE OPS
      IMPLICIT NONE
      CONTAINS
      FUNCTION APART(V, W, K) RESULT(FAR)
      DOUBLE PRECISION, INTENT(IN) :: W(:),
     &    V(:)
      INTEGER, INTENT(IN) :: K
      DOUBLE PRECISION :: FAR
      INTEGER :: I
      FAR = 0
!$OMP PARALLEL DO REDUCTION(MAX:FAR)
      DO I = 1, SIZE(W)
      FAR = MAX(FAR, ABS(V(I) - W(I)) + K)
      END DO
      END FUNCTION
      END MODULE
      PROGRAM SAME
      USE OPS
      IMPLICIT NONE
      INTEGER N, I, IT
      PARAMETER (N = 60)
      DOUBLE PRECISION X(N), R(N), P(N), Q(N), RHO, A, B, OLD
      DOUBLE PRECISION DOT
      EXTERNAL DOT
C$HOMING DISTRIBUTE X(BLOCK), R(BLOCK), P(BLOCK), Q(BLOCK)
C$OMP PARALLEL DO
      DO I = 1, N
        X(I) = 0
        R(I) = MOD(I, 7)
        P(I) = R(I)
      END DO
      RHO = DOT(N, R, R)
      DO 50 IT = 1, 9
        CALL MATVEC(N, P, Q)
        A = RHO/DOT(N, P, Q)
        CALL UPD(N, A, P, X)
        CALL UPD(N, -A, Q, R)
        OLD = RHO
        RHO = DOT(N, R,
     &        R)
        B = RHO/OLD
C$OMP PARALLEL DO
        DO I = 1, N
          P(I) = R(I) + B*P(I)
        END DO
 50   CONTINUE
      PRINT '(6F12.6)', X(1), X(N/2), X(N), APART(X, X, 2),
     &  APART(X, P, K=0), APART(P, P, K=IT)
      END
      DOUBLE PRECISION FUNCTION DOT(N, V, W)
      INTEGER N, I
      DOUBLE PRECISION V(N), W(N), S
      S = 0
C$OMP PARALLEL DO DEFAULT(NONE) SHARED(N, V, W) REDUCTION(+:S)
      DO I = 1, N
        S = S + V(I)*W(I)
      END DO
                                                               DOT = S
      END
      SUBROUTINE MATVEC(N, V, W)
      INTEGER N, I
      DOUBLE PRECISION V(N), W(N)
C$OMP PARALLEL DO
      DO I = 2, N - 1
        W(I) = 3*V(I) - V(I-1) - V(I+1)
      END DO
      W(1) = 3*V(1) - V(2)
      W(N) = 3*V(N) - V(N-1)
      END
      SUBROUTINE UPD(N, A, V, W)
      INTEGER N, I
      DOUBLE PRECISION V(N), W(N), A
C$OMP PARALLEL DO
      DO I = 1, N
        W(I) = W(I) + A*V(I)
      END DO
      END
