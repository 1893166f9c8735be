// A program that has its OpenMP runtime in itself, as one linked statically with libomp: no entry point of it
// can be interposed, and only OMPT tells of regions. The part of the runtime that a tool sees is played here.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef union {
    uint64_t value;
    void* pointer;
} data_t;
typedef void (*function_t)(void);
typedef function_t (*lookup_t)(const char*);
typedef struct {
    int (*initialize)(lookup_t, int, data_t*);
    void (*finalize)(data_t*);
    data_t tool_data;
} tool_t;
typedef void (*begin_t)(data_t*, const void*, data_t*, unsigned, int, const void*);
typedef void (*end_t)(data_t*, data_t*, int, const void*);

enum { on_begin = 3, on_end = 4, words = 1 << 18, iterations = 60 };

static function_t callbacks[64];

static int set_callback(int event, function_t callback) {
    callbacks[event] = callback;
    return 5; // always called
}

static function_t lookup(const char* name) {
    return name[5] == 's' ? (function_t)set_callback : NULL; // "ompt_set_callback"
}

__attribute__((noinline)) static void region(uint64_t* a, uint64_t factor) {
    data_t parallel = {0};
    if (callbacks[on_begin])
        ((begin_t)callbacks[on_begin])(NULL, NULL, &parallel, 1, 0, __builtin_return_address(0));
    for (long i = 0; i < words; ++i)
        a[i] = a[i] * factor + (uint64_t)i;
    if (callbacks[on_end]) ((end_t)callbacks[on_end])(&parallel, NULL, 0, __builtin_return_address(0));
}

__attribute__((noinline)) static void step(uint64_t* a) {
    region(a, 3);
    region(a, 5);
    region(a, 7);
    __asm__ volatile("" ::: "memory");
}

int main(void) {
    tool_t* (*start)(unsigned, const char*) =
        (tool_t * (*)(unsigned, const char*)) dlsym(RTLD_DEFAULT, "ompt_start_tool");
    tool_t* tool = start ? start(202011, "played") : NULL;
    if (tool && !tool->initialize(lookup, 0, &tool->tool_data)) tool = NULL;
    uint64_t* a = calloc(words, sizeof *a);
    if (!a) abort();
    for (int i = 0; i < iterations; ++i)
        step(a);
    uint64_t sum = 0;
    for (long i = 0; i < words; ++i)
        sum = sum * 3 + a[i];
    printf("sum %016llx\n", (unsigned long long)sum);
    free(a);
    if (tool) tool->finalize(&tool->tool_data);
    return 0;
}
