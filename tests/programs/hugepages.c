// Arrays on huge pages, by advice; mlock and mlockall; memory that is shared between processes.
//
// huge | mlock | mlockall | shared (anonymous) | shm (a POSIX object, also seen by a child) | file
// (MAP_SHARED of a file) | populate | memfd
#include "core.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t* map(size_t bytes, int flags, int file) {
    void* block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (block == MAP_FAILED) {
        printf("no memory\n");
        exit(1);
    }
    return (uint64_t*)block;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "huge";
    const size_t bytes = CORE_WORDS * sizeof(uint64_t);
    uint64_t *a, *b;
    int file = -1;
    if (strcmp(how, "huge") == 0) {
        a = (uint64_t*)aligned_alloc(2 << 20, 4 * bytes); // more than one huge page
        b = (uint64_t*)aligned_alloc(2 << 20, 4 * bytes);
        (void)madvise(a, 4 * bytes, MADV_HUGEPAGE);
        (void)madvise(b, 4 * bytes, MADV_HUGEPAGE);
        memset(a, 1, 4 * bytes);
        memset(b, 1, 4 * bytes);
    } else if (strcmp(how, "shared") == 0) {
        a = map(2 * bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
        b = a + CORE_WORDS;
    } else if (strcmp(how, "shm") == 0 || strcmp(how, "file") == 0 || strcmp(how, "memfd") == 0) {
        if (strcmp(how, "shm") == 0) {
            char name[64];
            snprintf(name, sizeof name, "/programs-%d", (int)getpid());
            file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
            shm_unlink(name);
        } else if (strcmp(how, "memfd") == 0) {
            file = memfd_create("programs", 0);
        } else {
            char name[] = "/tmp/hugepages-XXXXXX";
            file = mkstemp(name);
            unlink(name);
        }
        expect(ftruncate(file, (off_t)(2 * bytes)) == 0, "size");
        a = map(2 * bytes, MAP_SHARED, file);
        b = a + CORE_WORDS;
    } else if (strcmp(how, "populate") == 0) {
        a = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
        b = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
    } else {
        a = (uint64_t*)malloc(bytes);
        b = (uint64_t*)malloc(bytes);
        if (strcmp(how, "mlockall") == 0) (void)mlockall(MCL_CURRENT | MCL_FUTURE);
    }
    core_start_in(a, b);
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "mlock") == 0) {
#pragma omp parallel num_threads(3) reduction(+ : seen)
            {
                if (omp_get_thread_num() == 0) {
                    char* part = (char*)core_b + (i % 8) * 65536;
                    expect(mlock(part, 65536) == 0, "mlock");
                    expect(munlock(part, 65536) == 0, "munlock");
                }
                seen += core_read_share();
            }
        }
        if ((strcmp(how, "shm") == 0 || strcmp(how, "shared") == 0) && i % 8 == 7) {
            fflush(stdout);
            const pid_t pid = fork();
            if (pid == 0) {
                for (long at = 0; at < CORE_WORDS; ++at)
                    core_b[at] += (uint64_t)at;
                _exit(0);
            }
            waitpid(pid, NULL, 0);
            for (long at = 0; at < CORE_WORDS; ++at)
                seen = seen * 3 + core_b[at]; // what the child wrote
        }
        if (strcmp(how, "huge") == 0) {
            uint64_t* far = core_a + CORE_WORDS;
#pragma omp parallel for schedule(static)
            for (long at = 0; at < 3 * CORE_WORDS; at += 8)
                far[at] += (uint64_t)at;
        }
    }
    if (strcmp(how, "huge") == 0)
        for (long at = CORE_WORDS; at < 4 * CORE_WORDS; at += 8)
            seen += core_a[at];
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
