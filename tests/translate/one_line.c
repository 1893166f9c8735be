// Loops that share their lines with other code.
// clang-format off
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int n = 21, m = 9;
  double (*a)[m] = malloc(sizeof(double[n][m])), (*b)[m] = malloc(sizeof(double[n][m]));
  double s = 0;
#pragma homing distribute a[cyclic(3)][cyclic], b[cyclic(3)][cyclic] extent(n, m)
#pragma omp parallel for
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { a[i][j] = i + 10 * j; b[i][j] = 0; }
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++) { for (int j = 1; j < m - 1; j++) b[i][j] = a[i-1][j] + a[i+1][j] + a[i][j-1]; }
#pragma omp parallel for reduction(+:s)
  for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) { s += b[i][j]; } } s += 1; if (s > 3) { for (int i = 0; i < n; i++) a[i][0] = 7; } else s = 0;
#pragma omp parallel
  {
#pragma omp for
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { a[i][j] += 1; } /* end */ }
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) printf("%g ", b[i][j] + a[i][j]); printf("%g\n", s);
  free(a); free(b); return 0;
}
