// A program that knows where its pages are: it sweeps an array in blocks, then asks the kernel where each
// page is, and which memory policies are in force before the first parallel region, after the last one, and
// at the very end of the process (placed_end.c).
//
//     placed MIB ITERATIONS [own]      own: the program gives the array a policy of its own (prefer node 1)
//
// prints one JSON object.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* placed_array; // placed_end.c

enum { page_bytes = 4096, most_nodes = 64 };

typedef struct {
    int mode;
    unsigned long nodes;
} policy;

static policy policy_of(void* address) {
    policy found = {-1, 0};
    unsigned long mask[16] = {0};
    if (syscall(SYS_get_mempolicy, &found.mode, mask, 1024ul, address, address ? MPOL_F_ADDR : 0) != 0) {
        perror("get_mempolicy");
        exit(1);
    }
    found.nodes = mask[0];
    return found;
}

static void print_policy(const char* name, policy found) {
    printf("\"%s\": [%d, %lu], ", name, found.mode, found.nodes);
}

int main(int count, char** words) {
    const long bytes = count > 2 ? atol(words[1]) << 20 : 0;
    const int iterations = count > 2 ? atoi(words[2]) : 0;
    const long elements = bytes / (long)sizeof(double);
    double* array = NULL;
    if (bytes <= 0 || posix_memalign((void**)&array, page_bytes, (size_t)bytes) != 0) return 2;
    if (count > 3 && strcmp(words[3], "own") == 0) {
        const unsigned long node_1 = 2;
        if (syscall(SYS_mbind, array, bytes, MPOL_PREFERRED, &node_1, 64ul, 0) != 0) {
            perror("mbind");
            return 1;
        }
    }
    for (long i = 0; i < elements; ++i)
        array[i] = (double)i;
    const policy process_before = policy_of(NULL), array_before = policy_of(array + elements / 2);

    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < elements; ++i)
            array[i] += 1;
    }

    const policy process_after = policy_of(NULL), array_after = policy_of(array + elements / 2);
    // A page that is armed for a hint fault has no answer: touch it first.
    double sum = 0;
    for (long i = 0; i < elements; ++i)
        sum += array[i];
    long nodes[most_nodes] = {0}, unknown = 0;
    for (long offset = 0; offset < bytes; offset += page_bytes) {
        void* page = (char*)array + offset;
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0 || node < 0 || node >= most_nodes)
            ++unknown;
        else
            ++nodes[node];
    }
    printf("{");
    print_policy("process_before", process_before);
    print_policy("process_after", process_after);
    print_policy("array_before", array_before);
    print_policy("array_after", array_after);
    printf("\"sum\": %.17g, \"address\": %lu, \"unknown\": %ld, \"nodes\": [%ld, %ld, %ld, %ld]", sum,
           (unsigned long)(uintptr_t)array, unknown, nodes[0], nodes[1], nodes[2], nodes[3]);
    fflush(stdout);
    placed_array = array + elements / 2; // not freed: its policy is asked for once more
    return 0;
}
