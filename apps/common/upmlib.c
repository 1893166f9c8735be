#define _GNU_SOURCE
#include "upmlib.h"

#include "app.h"

#include <dlfcn.h>
#include <stddef.h>

enum calls { CALLS_NONE, CALLS_REPLAY, CALLS_HYBRID };
// Iterations in which pages move at their ends before the hybrid records.
enum { ITERATIONS_FIRST = 3 };

static enum calls calls;

static void call(const char* name) {
    void (*function)(void) = NULL;
    *(void**)&function = dlsym(RTLD_DEFAULT, name); // POSIX lets dlsym's result be a function
    if (function) function();
}

void app_upmlib_option(void) {
    calls =
        (enum calls)app_choice_option("--upmlib", CALLS_NONE, "none|replay|hybrid",
                                      "move pages for the phase along z: calls of UPMlib, where homing is");
}

static void at_border(long iteration, const char* then) {
    const long recorded = calls == CALLS_HYBRID ? ITERATIONS_FIRST + 1 : 1;
    if (calls == CALLS_NONE || iteration < recorded) return;
    call(iteration == recorded ? "upmlib_record" : then);
}

void app_phase_begins(long iteration) { at_border(iteration, "upmlib_replay"); }
void app_phase_ends(long iteration) { at_border(iteration, "upmlib_undo"); }

void app_upmlib_iteration_ends(long iteration) {
    (void)iteration;
    if (calls == CALLS_HYBRID) call("upmlib_migrate_memory");
}
