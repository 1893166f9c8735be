// Arrays that the first thread allocates and clears in every step, the team uses, and somebody frees. Each
// way to allocate and to end one has its turn. Prints one JSON object: what was computed, how many pages of
// the newest arrays lie on the node of the thread that uses them before it does, and how many pages of the
// heap have a memory policy when all arrays have ended.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <malloc.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { steps = 40, ways = 4, words = 128 << 10, more = 160 << 10, page_bytes = 4096, most_threads = 64 };

static int failed;
static int node_of_thread[most_threads];

static void expect(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    failed = 1;
}

static uint64_t* allocated(int way) {
    void* block = NULL;
    switch (way) {
    case 0:
        block = malloc(words * sizeof(uint64_t));
        break;
    case 1:
        block = calloc(words, sizeof(uint64_t));
        break;
    case 2:
        if (posix_memalign(&block, 64, words * sizeof(uint64_t)) != 0) abort();
        break;
    default:
        block = aligned_alloc(page_bytes, words * sizeof(uint64_t));
        break;
    }
    if (!block) abort();
    memset(block, 0, words * sizeof(uint64_t));
    return (uint64_t*)block;
}

/// Pages that lie with the thread to which the static schedule gives their words.
static long pages_at_home(uint64_t* block) {
    long home = 0;
    for (char* at = (char*)(((uintptr_t)block | (page_bytes - 1)) + 1);
         at + page_bytes <= (char*)(block + words); at += page_bytes) {
        void* page = at;
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0) perror("move_pages");
        const long word = (uint64_t*)at - block;
        home += node == node_of_thread[word * omp_get_max_threads() / words];
    }
    return home;
}

/// A child has its own copy of the block, and of what homing knows of it.
static void end_in_child(uint64_t* block) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        block[1] = 1;
        free(block);
        void* other = malloc(words * sizeof(uint64_t));
        if (other) memset(other, 1, words * sizeof(uint64_t));
        free(other);
        _exit(other ? 0 : 1);
    }
    int status = -1;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child frees it, too");
}

/// Pages of the program's heap that have a policy of their own.
static long pages_with_policy(void) {
    long with = 0;
    char* const end = (char*)sbrk(0);
    for (char* at = end - 2 * ways * (words * sizeof(uint64_t)); at < end; at += page_bytes) {
        int mode = 0;
        unsigned long mask[16];
        if (syscall(SYS_get_mempolicy, &mode, mask, 1024ul, at, MPOL_F_ADDR) == 0)
            with += mode != MPOL_DEFAULT;
    }
    return with;
}

int main(void) {
#pragma omp parallel
    {
        unsigned node = 0;
        syscall(SYS_getcpu, NULL, &node, NULL);
        node_of_thread[omp_get_thread_num()] = (int)node;
    }
    uint64_t sum = 0;
    long home[ways] = {0};
    for (int step = 0; step < steps; ++step)
        for (int way = 0; way < ways; ++way) {
            uint64_t* one = allocated(way);
            if (step == steps - 1) home[way] = pages_at_home(one);
            for (int pass = 0; pass < 3; ++pass) {
#pragma omp parallel for schedule(static)
                for (long i = 0; i < words; ++i)
                    one[i] += (uint64_t)(i ^ step) * (uint64_t)(pass + 1);
            }
            if (step % 20 == 19) end_in_child(one);
            sum = sum * 31 + one[words / 2] + one[words - 1];
            if (way == 2) { // it grows, and is as it was
                const uint64_t last = one[words - 1];
                one = (uint64_t*)realloc(one, more * sizeof *one);
                if (!one) abort();
                expect(one[words - 1] == last, "realloc() keeps what there was");
                one[more - 1] = 1;
            }
            if (way % 2 == 0) {
                free(one);
            } else { // another thread does
#pragma omp parallel
                if (omp_get_thread_num() == omp_get_num_threads() - 1) free(one);
            }
        }
    printf("{\"sum\": %llu, \"home\": [%ld, %ld, %ld, %ld], \"pages\": %ld, \"with_policy\": %ld}\n",
           (unsigned long long)sum, home[0], home[1], home[2], home[3],
           (long)(words * sizeof(uint64_t) / page_bytes), pages_with_policy());
    return failed;
}
