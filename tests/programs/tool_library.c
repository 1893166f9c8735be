// An OMPT tool as users bring them: by OMP_TOOL_LIBRARIES or by LD_PRELOAD. It says where the calls of
// regions are, of which there are as many as the program has. (libomp only)
#include <dlfcn.h>
#include <omp-tools.h>
#include <stdio.h>
#include <string.h>

static long begun, ended, of_program;

static void on_begin(ompt_data_t* task, const ompt_frame_t* frame, ompt_data_t* parallel, unsigned threads,
                     int flags, const void* address) {
    (void)task, (void)frame, (void)parallel, (void)threads, (void)flags;
    ++begun;
    Dl_info info = {0};
    // the address lies in the program, not in a library
    of_program += dladdr(address, &info) && strstr(info.dli_fname, ".so") == NULL;
}

static void on_end(ompt_data_t* parallel, ompt_data_t* task, int flags, const void* address) {
    (void)parallel, (void)task, (void)flags, (void)address;
    ++ended;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t* data) {
    (void)device, (void)data;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    set(ompt_callback_parallel_begin, (ompt_callback_t)on_begin);
    set(ompt_callback_parallel_end, (ompt_callback_t)on_end);
    return 1;
}

static void finalize(ompt_data_t* data) {
    (void)data;
    printf("tool: %ld regions, %ld ended, %ld called by the program\n", begun, ended, of_program);
    fflush(stdout);
}

ompt_start_tool_result_t* ompt_start_tool(unsigned version, const char* runtime) {
    (void)version, (void)runtime;
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}
