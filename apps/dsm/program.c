#include "program.h"

#include "app.h"

#include <stdlib.h>
#include <string.h>

struct program program_options(void) {
    struct program chosen;
    chosen.dsm.processes =
        (int)app_integer_option("--processes", 4, 1, DSM_MOST_PROCESSES, "1 to 32, default 4");
    chosen.version = (enum version)app_choice_option("--version", VERSION_SHARED, "shared|private",
                                                     "what lies in shared memory, default all (shared)");
    chosen.dsm.diffs =
        (enum dsm_diffs)app_choice_option("--diffs", DSM_LAZY, "lazy|eager", "when made, default lazy");
    chosen.dsm.costs = app_text_option("--costs", "FILE", "predict times from these costs");
    return chosen;
}

struct block block_of(long count, int process, int processes) {
    return (struct block){count * process / processes, count * (process + 1) / processes};
}

void* program_memory(size_t bytes) {
    void* memory = calloc(bytes > 0 ? bytes : 1, 1);
    if (memory == NULL) app_error("not enough memory");
    return memory;
}

bool same_bits(const void* left, const void* right, size_t bytes) { return memcmp(left, right, bytes) == 0; }
