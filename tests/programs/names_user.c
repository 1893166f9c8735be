// Linked with library_names.c.
#include "core.h"

struct vector {
    double x, y, z;
};
double connect(double first, double second, int count, const char* name);
struct vector splice(struct vector one, struct vector other);
double poll(double x);
void link(double* x);
int log(const char* format, ...);
// The C library's own declaration may be there already.
double sorted(int k, double x, float y, long a, long b, long c, long d, long last) __asm__("select");

int main(void) {
    core_start();
    double x = 1;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        const struct vector joined = splice((struct vector){1, 2, 3}, (struct vector){i, i, i});
        link(&x);
        log("%g %g %g %g\n", connect(1.5, 2.5, i, "x"), joined.x, joined.y, joined.z);
        log("%g %g %g\n", sorted(i, 1.25, 2.5f, 1, 2, 3, 4, 5), poll(x), x);
    }
    return core_end();
}
