// Resource limits that the program sets on itself, so that whatever homing needs may be refused from then on.
//
// as | data | nofile | fsize | nproc | stack | memlock | sigpending | cpu
#include "core.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static long status_kilobytes(const char* key) {
    char line[256];
    long value = 0;
    FILE* file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) value = atol(line + strlen(key));
    if (file) fclose(file);
    return value;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "as";
    core_start();
    core_run(2); // threads exist
    struct rlimit limit = {0, 0};
    int what = RLIMIT_AS;
    const rlim_t megabyte = 1 << 20;
    if (strcmp(how, "as") == 0) {
        limit.rlim_cur = ((rlim_t)status_kilobytes("VmSize:") << 10) + 24 * megabyte;
    } else if (strcmp(how, "data") == 0) {
        what = RLIMIT_DATA;
        limit.rlim_cur = ((rlim_t)status_kilobytes("VmData:") << 10) + 24 * megabyte;
    } else if (strcmp(how, "nofile") == 0) {
        what = RLIMIT_NOFILE;
        limit.rlim_cur = 3; // nothing more can be opened
    } else if (strcmp(how, "fsize") == 0) {
        what = RLIMIT_FSIZE; // growing any file ends the process by SIGXFSZ; stdout is a pipe
    } else if (strcmp(how, "nproc") == 0) {
        what = RLIMIT_NPROC;
    } else if (strcmp(how, "stack") == 0) {
        what = RLIMIT_STACK;
        limit.rlim_cur = 256 << 10;
    } else if (strcmp(how, "memlock") == 0) {
        what = RLIMIT_MEMLOCK;
    } else if (strcmp(how, "sigpending") == 0) {
        what = RLIMIT_SIGPENDING;
    } else {
        what = RLIMIT_CPU;
        limit.rlim_cur = 60;
    }
    limit.rlim_max = limit.rlim_cur;
    expect(setrlimit(what, &limit) == 0, "setrlimit");
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "as") == 0 || strcmp(how, "data") == 0) {
            void* volatile small = malloc(4 * megabyte);
            void* volatile large = malloc(64 * megabyte);
            expect(small != NULL, "what the limit leaves is there");
            expect(large == NULL, "what exceeds the limit is refused");
            free(small);
            free(large);
        }
        if (strcmp(how, "nofile") == 0) expect(open("/dev/null", O_RDONLY) == -1, "no descriptor left");
    }
    struct rlimit now;
    expect(getrlimit(what, &now) == 0 && now.rlim_cur == limit.rlim_cur && now.rlim_max == limit.rlim_max,
           "limit kept");
    return core_end();
}
