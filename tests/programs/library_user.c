// Linked with library.c, whose constructor runs regions before main and its destructor after it.
#include <stdint.h>
#include <stdio.h>
uint64_t library_run(int iterations);
int main(void) {
    printf("main %016llx\n", (unsigned long long)library_run(30));
    return 0;
}
