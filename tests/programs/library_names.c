// A library whose functions have names of the C library's and mean something else: numbers of all kinds come
// and go in registers and on the stack, none of which is a descriptor or the address of a structure.
#include <stdarg.h>
#include <stdio.h>

struct vector {
    double x, y, z;
};

double connect(double first, double second, int count, const char* name) {
    return first * second + count + name[0];
}
double select(int k, double x, float y, long a, long b, long c, long d, long last) {
    return k + x * y + (double)(a + b + c + d) + (double)last * 1000;
}
struct vector splice(struct vector one, struct vector other) {
    return (struct vector){one.x + other.x, one.y - other.y, one.z * other.z};
}
double poll(double x) { return x * 3; }
void link(double* x) { *x *= 2; }
int log(const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int written = vprintf(format, list);
    va_end(list);
    return written;
}
