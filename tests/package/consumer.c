/* Uses the C interface as a program of somebody's would: says "consumer: well" if it is all there and
 * answers. */
#include <homing/homing.h>

#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 20 };

static int answered(int status) { return status >= HOMING_OK || status == HOMING_ASIDE; }

int main(void) {
    char* memory = calloc(BYTES, 1);
    int nodes[8];
    homing_statistics_t statistics = {.struct_bytes = sizeof statistics};
    int well = memory != NULL;
    well = well && HOMING_VERSION >= 200 && homing_version() == HOMING_VERSION;
    well = well && answered(homing_watch(memory, BYTES, "memory"));
    well = well && answered(homing_iteration());
    well = well && answered(homing_next_touch(memory, BYTES));
    well = well && answered(homing_place_round_robin(memory, BYTES));
    well = well && homing_where(memory, BYTES, nodes, 8) != HOMING_INVALID;
    well = well && homing_statistics(&statistics) == HOMING_OK;
    well = well && answered(homing_unwatch(memory));
    free(memory);
    puts(well ? "consumer: well" : "consumer: homing did not answer as homing.h says");
    return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
