// In the middle of the run a part of a heap block becomes other memory, with a protection that must last.
//
// shared (a read-only view of a file) | private | none (a hole) | raw and number (mprotect and mmap by system
// call) | pkey (pkey_mprotect) | segment (System V, read-only) | moved (another mapping is moved there)
#include "core.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { part = 1 << 20, whole = 8 << 20 };
static char* block;
static char* at;

static int file(void) {
    char name[] = "/tmp/replaced-XXXXXX";
    const int made = mkstemp(name);
    expect(ftruncate(made, part) == 0, "truncate");
    const int read_only = open(name, O_RDONLY);
    unlink(name);
    close(made);
    return read_only;
}

// The mapping's protection as /proc shows it.
static const char* replace(const char* how) {
    if (strcmp(how, "shared") == 0) {
        expect(mmap(at, part, PROT_READ, MAP_SHARED | MAP_FIXED, file(), 0) == at, "map");
        return "r--s";
    }
    if (strcmp(how, "private") == 0) {
        expect(mmap(at, part, PROT_READ, MAP_PRIVATE | MAP_FIXED, file(), 0) == at, "map");
    } else if (strcmp(how, "none") == 0) {
        expect(mmap(at, part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, "map");
        return "---p";
    } else if (strcmp(how, "number") == 0) {
        expect(syscall(SYS_mmap, at, (size_t)part, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                       (off_t)0) == (long)at,
               "map");
    } else if (strcmp(how, "raw") == 0) {
        expect(syscall(SYS_mprotect, at, (size_t)part, PROT_READ) == 0, "mprotect");
    } else if (strcmp(how, "pkey") == 0) {
        expect(pkey_mprotect(at, part, PROT_READ, -1) == 0, "pkey_mprotect");
    } else if (strcmp(how, "segment") == 0) {
        const int segment = shmget(IPC_PRIVATE, part, 0600);
        expect(shmat(segment, at, SHM_REMAP | SHM_RDONLY) == at, "shmat");
        shmctl(segment, IPC_RMID, NULL);
        return "r--s";
    } else {
        void* other = mmap(NULL, part, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(mremap(other, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at, "mremap");
    }
    return "r--p";
}

static int is_protected(const char* wanted) {
    char line[512];
    unsigned long covered = (unsigned long)at;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from = 0, to = 0;
        char protection[8] = "";
        if (sscanf(line, "%lx-%lx %7s", &from, &to, protection) == 3 && from <= covered && to > covered &&
            strcmp(protection, wanted) == 0)
            covered = to;
    }
    if (maps) fclose(maps);
    return covered >= (unsigned long)at + part;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "shared";
    const char* protection = NULL;
    core_start();
    block = (char*)aligned_alloc(part, whole);
    memset(block, 1, whole);
    at = block + 2 * part;
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i == 12) protection = replace(how);
        const int readable = !protection || protection[0] == 'r';
#pragma omp parallel for reduction(+ : seen)
        for (long k = 0; k < whole; k += 512) {
            if (!protection || block + k < at || block + k >= at + part)
                block[k] += 1;
            else if (readable)
                seen += (uint64_t)(unsigned char)block[k];
        }
        if (protection) expect(is_protected(protection), "the protection lasts");
    }
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
