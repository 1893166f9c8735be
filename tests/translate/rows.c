// Rows and planes of distributed arrays go to functions that use their elements alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 20
#define M 7
#define HALF N >> 1
static double u[N][M], v[N][M], s[N], w[N][4][M];
static char text[N][9];
#pragma homing distribute u[block][*], v[cyclic][*], s[block], w[block][*][*], text[block][*]
static void scale(double* row, int n, double f) {
    for (int j = 0; j < n; j++)
        row[j] *= f;
}
static double sum(const double* row, int n) {
    double t = 0;
    for (int j = 1; j < n; j++)
        t += row[j] - row[j - 1];
    return t + row[0];
}
static void copy(double* to, const double from[M]) {
    for (int j = M - 1; j >= 0; j--)
        to[j] = from[j];
}
static void plane(double (*p)[M], int k) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < M; j++)
            p[i][j] = i + j * k;
}
static void rows(int n, int m, double x[n][m], double y[n][m]) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            x[i][j] = i + j * j;
        scale(x[i], m, 1.5);
        y[i][0] = sum(x[i], m);
    }
}

typedef struct {
    double x, v, w[2];
    int id;
} Particle;
static Particle ps[N];
static double at[N];
#pragma homing distribute ps[block], at[block]
static void smooth(int n, double x[n][M], double y[n][M]) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) {
        const double *up = x[i - 1], *here = x[i], *down = x[i + 1];
        double* to = y[i];
        for (int j = 0; j < M; j++)
            to[j] = (up[j] + 2 * here[j] + down[j]) / 4;
        *to += 1;
    }
}
static double pointers(void) {
    double e = 0;
    for (int i = 0; i < N; i++) {
        Particle* p = &ps[i];
        p->x = i, p->v = -i / 2.0, p->id = i;
        p->w[0] = (*p).x;
        p[0].w[1] = 1;
        double* m = &at[i & 15];
        m[0] = 0;
    }
#pragma omp parallel for
#pragma homing on home(ps[i])
    for (int i = 0; i < N; i++) {
        Particle* const p = &ps[i];
        p->v -= 0.1 * p->x;
        p->x += 0.1 * p->v;
        double* q = &at[i];
        q[0] = p->x + p->w[1];
    }
    for (int i = 1; i < N; i++) {
        const Particle* p = &ps[i];
        const double* before = &at[i - 1];
        e += p->v * p->v + p->x * p->x + before[1] - before[0];
    }
    double* half = &at[HALF];
    for (int k = 0; k < 3; k++)
        half[k] = -k;
    for (int i = 0; i < N; i++)
        e += i * at[i];
    smooth(N, u, v);
#pragma omp parallel for
#pragma homing on home(u[i][:])
    for (int i = 0; i < N; i++) {
        double before[M];
        memcpy(before, u[i], sizeof u[i]);
        memset(u[i], 0, M * sizeof(double));
        memcpy(w[i][1], before, sizeof w[i][1]);
        memmove(u[i], w[i][1], sizeof(double) * (M - 1));
        snprintf(text[i], sizeof text[i], "%d", 10 * i);
        u[i][2] += strlen(text[i]) + atoi(text[i]) + (strcmp(text[i], "70") == 0);
    }
    memcpy(v[0], u[N - 1], sizeof v[0]);
    for (int i = 0; i < N; i++)
        e += u[i][M - 1] + u[i][2] + text[i][0] + u[i][1] * w[i][1][M - 1] + v[0][i % M];
    return e + ps[N - 1].id;
}
int main(void) {
    int n = N, m = M;
    double(*a)[m] = malloc(sizeof(double[n][m]));
    double(*b)[m] = malloc(sizeof(double[n][m]));
#pragma homing distribute a[block][*] extent(n, m), b[block][*] extent(n, m)
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++)
            u[i][j] = i * j;
        plane(w[i], i);
    }
    rows(n, m, a, b);
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            v[i][j] = j;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        scale(v[i], M, i);
#pragma omp parallel for
    for (int i = 1; i < N; i++) {
        double t = sum(u[i - 1], M);
        s[i] = sum(u[i], M) + t + w[i][3][2];
        copy(w[i][1], u[i]);
    }
    for (int i = 0; i < N; i++)
        scale(v[i], M, 2);
    double t = 0;
    for (int i = 0; i < N; i++)
        t += sum(v[i], M) * i + s[i] + b[i][0] + sum(w[i][1], M);
    printf("%g\n", t);
    free(a);
    free(b);
    double e = pointers();
    printf("%.9g %.9g\n", e, v[3][0]);
    return 0;
}
