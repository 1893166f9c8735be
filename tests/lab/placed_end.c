// The very end of `placed`: a library that it links, whose destructor runs after homing's (preloaded, so
// loaded before it) has given back what it had changed. Finishes the JSON object that the program began.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void* placed_array; // an address in the array, set by the program

static void print_policy(const char* name, void* address) {
    int mode = -1;
    unsigned long mask[16] = {0};
    syscall(SYS_get_mempolicy, &mode, mask, 1024ul, address, address ? MPOL_F_ADDR : 0);
    dprintf(STDOUT_FILENO, ", \"%s\": [%d, %lu]", name, mode, mask[0]);
}

__attribute__((destructor)) static void at_the_end(void) {
    if (!placed_array) return;
    print_policy("process_end", NULL);
    print_policy("array_end", placed_array);
    dprintf(STDOUT_FILENO, "}\n");
}
