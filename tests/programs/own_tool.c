// A program that brings its own OMPT tool, as Score-P and others do: it must keep working. (libomp only)
#include "core.h"
#include <omp-tools.h>

static long begun;

static void on_parallel(ompt_data_t* task, const ompt_frame_t* frame, ompt_data_t* parallel, unsigned threads,
                        int flags, const void* address) {
    (void)task, (void)frame, (void)parallel, (void)threads, (void)flags, (void)address;
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t* data) {
    (void)device, (void)data;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    set(ompt_callback_parallel_begin, (ompt_callback_t)on_parallel);
    return 1;
}

static void finalize(ompt_data_t* data) { (void)data; }

ompt_start_tool_result_t* ompt_start_tool(unsigned version, const char* runtime) {
    (void)version, (void)runtime;
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}

int main(void) {
    core_start();
    core_run(CORE_ITERATIONS);
    printf("regions seen by my tool: %ld\n", begun);
    return core_end();
}
