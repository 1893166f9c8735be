// errno and the floating-point environment belong to the program: neither a touch of an array, nor malloc and
// free, nor the begin and end of a region may change them.
//
// errno | round (rounding mode) | trap (invalid, zero division and overflow trap) | flags (no exception is
// raised) | denormal (flush to zero stays set)
#include "core.h"
#include <errno.h>
#include <fenv.h>
#if defined __x86_64__
#include <xmmintrin.h>
#endif

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "errno";
    if (strcmp(how, "round") == 0) fesetround(FE_UPWARD);
    if (strcmp(how, "trap") == 0) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#if defined __x86_64__
    if (strcmp(how, "denormal") == 0) _mm_setcsr(_mm_getcsr() | 0x8040);
    const unsigned control = _mm_getcsr() & ~0x3fu;
#endif
    core_start();
    uint64_t seen = 0;
    feclearexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        errno = 1234;
        core_step(i);
#pragma omp parallel reduction(+ : seen)
        {
            errno = 4321;
            seen += core_read_share();
            void* block = malloc(300000);
            memset(block, 1, 300000);
            expect(errno == 4321, "errno inside a region");
            free(block);
            expect(errno == 4321, "errno after free");
            errno = 1234;
        }
        expect(errno == 1234, "errno after regions");
        expect(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW) == 0, "no flags raised");
        if (strcmp(how, "round") == 0) expect(fegetround() == FE_UPWARD, "rounding mode");
        if (strcmp(how, "trap") == 0)
            expect((fegetexcept() & (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)) != 0, "traps are on");
#if defined __x86_64__
        expect((_mm_getcsr() & ~0x3fu) == control, "control register");
#endif
    }
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
