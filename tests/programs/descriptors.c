// A program that closes every descriptor that it did not open, and counts on the numbers it gets: at the
// start, in the middle, and inside a region.
//
// loop | range (close_range) | from (closefrom) | region | number (new descriptors get the lowest numbers) |
// dup
#include "core.h"
#include <fcntl.h>
#include <unistd.h>

static void close_all(const char* how) {
    if (strcmp(how, "range") == 0)
        close_range(3, ~0U, 0);
    else if (strcmp(how, "from") == 0)
        closefrom(3);
    else
        for (int number = 3; number < 1024; ++number)
            close(number);
}

// Every number from 3 to 40 becomes a file of the program's own, whatever was there.
static void take_all(int from) {
    for (int number = 3; number <= 40; ++number)
        expect(dup2(from, number) == number, "dup2");
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "loop";
    if (strcmp(how, "number") != 0) close_all(how);
    char name[] = "/tmp/descriptors-XXXXXX";
    const int first = mkstemp(name);
    printf("first descriptor %d\n", first);
    unlink(name);
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i % 10 == 5 && strcmp(how, "region") != 0 && strcmp(how, "number") != 0) {
            if (strcmp(how, "dup") == 0)
                take_all(first);
            else
                close_all(how);
        }
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 1 && i % 4 == 3) {
                if (strcmp(how, "region") == 0) close_all(how);
                const int other = open("/dev/null", O_RDWR);
                if (i < 30) printf("descriptor %d\n", other);
                expect(write(other, core_b, 65536) == 65536, "write");
                close(other);
            }
        }
    }
    if (strcmp(how, "dup") == 0) {
        expect(lseek(first, 0, SEEK_END) == 0, "nobody wrote into my file");
    }
    return core_end();
}
