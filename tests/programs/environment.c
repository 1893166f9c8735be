// A program that clears its environment, changes its directory, and replaces itself by a program that uses
// OpenMP.
//
// clear | early (cleared before the first region) | preload (only LD_PRELOAD is removed) | twice (itself
// again, twice) | empty (an empty array of arguments' names)
#include "core.h"
#include <unistd.h>

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "clear";
    core_start();
    if (strcmp(how, "early") == 0) clearenv();
    core_run(CORE_ITERATIONS);
    if (strcmp(how, "early") == 0) return core_end();
    printf("%s %016llx\n", how, (unsigned long long)core_sum);
    fflush(stdout);
    if (strcmp(how, "end") == 0) return core_end();
    const char* next = strcmp(how, "twice") == 0 ? "once" : "end";
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return 3;
    self[length] = 0;
    expect(chdir("/") == 0, "chdir");
    if (strcmp(how, "clear") == 0) {
        clearenv();
        expect(getenv("PATH") == NULL, "nothing left");
        setenv("OMP_NUM_THREADS", "2", 1);
        execl(self, strcmp(how, "empty") == 0 ? "" : "other-name", next, (char*)NULL);
    }
    if (strcmp(how, "preload") == 0) unsetenv("LD_PRELOAD");
    if (strcmp(how, "empty") == 0) execl(self, "", next, (char*)NULL);
    execl(self, self, next, (char*)NULL);
    return 4;
}
