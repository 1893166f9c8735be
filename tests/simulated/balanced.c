// An array whose pages the described kernel's NUMA balancing may move: written by thread 0, then read whole
// in each sweep. balanced SWEEPS moved|alternating|bound
//   moved        by thread 1
//   alternating  by thread 1 and thread 2 in turn
//   bound        by thread 1, of memory that the program bound to all nodes with mbind
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { bytes = 1 << 20, count = bytes / sizeof(double) };

int main(int argc, char** argv) {
    const int sweeps = argc > 1 ? atoi(argv[1]) : 8;
    const char* mode = argc > 2 ? argv[2] : "moved";
    double* u = aligned_alloc(4096, bytes);
    unsigned long nodes = 0xf;
    if (strcmp(mode, "bound") == 0 && syscall(SYS_mbind, u, bytes, MPOL_BIND, &nodes, 64UL, 0U) != 0)
        return 3;
    for (int i = 0; i < count; ++i)
        u[i] = i;
    double sum = 0;
    for (int k = 0; k < sweeps; ++k) {
        const int reader = strcmp(mode, "alternating") == 0 ? 1 + k % 2 : 1;
#pragma omp parallel reduction(+ : sum)
        if (omp_get_thread_num() == reader)
            for (int i = 0; i < count; ++i)
                sum += u[i];
    }
    printf("%.17g\n", sum);
    return 0;
}
