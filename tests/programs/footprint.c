// Memory that a program has in ways other than malloc() of large blocks: footprint KIND. It is used in some
// regions, and what the process has in the end (/proc/self/smaps) is left in the file "smaps".
#include "core.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MIB = 1 << 20, BYTES = 48 * MIB, PAGE = 4096 };

static char own_heap[BYTES]; // of an allocator of the program's own
static __thread char of_thread[6 * MIB];

static char* map(size_t bytes, int protection, int flags, int file) {
    char* memory = (char*)mmap(NULL, bytes, protection, flags, file, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

static char* map_anonymous(size_t bytes) {
    return map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

// Small objects one behind another, as an allocator of the program's own deals them out.
static void use_pool(char* memory) {
    for (size_t at = 0; at + 112 <= BYTES; at += 112)
        memset(memory + at, 1, 100);
}

static void use_stack(void) {
    char local[4 * MIB];
    memset(local, 1, sizeof local);
    __asm__ volatile("" : : "r"(local) : "memory");
}

static void have(const char* kind) {
    if (!strcmp(kind, "mapped_pool")) {
        use_pool(map_anonymous(BYTES));
    } else if (!strcmp(kind, "static_pool")) {
        use_pool(own_heap);
    } else if (!strcmp(kind, "break")) {
        char* memory = (char*)sbrk(BYTES);
        if (memory == (char*)-1) abort();
        memset(memory, 1, BYTES);
    } else if (!strcmp(kind, "stacks")) {
#pragma omp parallel
        use_stack();
    } else if (!strcmp(kind, "thread_local")) {
#pragma omp parallel
        memset(of_thread, 1, sizeof of_thread);
    } else if (!strcmp(kind, "advised")) {
        char* memory = map_anonymous(BYTES);
        madvise(memory, BYTES, MADV_HUGEPAGE);
        memset(memory, 1, BYTES);
    } else if (!strcmp(kind, "shared")) {
        memset(map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1), 1, BYTES);
    } else if (!strcmp(kind, "memfd")) {
        const int file = memfd_create("pool", 0);
        if (file < 0 || ftruncate(file, BYTES) != 0) abort();
        memset(map(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file), 1, BYTES);
    } else if (!strcmp(kind, "private_file")) {
        const int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || ftruncate(file, BYTES) != 0) abort();
        memset(map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file), 1, BYTES);
    } else if (!strcmp(kind, "remapped")) {
        size_t bytes = MIB;
        char* memory = map_anonymous(bytes);
        for (; bytes < BYTES; bytes += MIB) {
            memory = (char*)mremap(memory, bytes, bytes + MIB, MREMAP_MAYMOVE);
            if (memory == MAP_FAILED) abort();
            memset(memory + bytes, 1, MIB);
        }
    } else if (!strcmp(kind, "committed")) { // reserved first, then made accessible by the piece
        char* memory = map(2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
        for (size_t at = 0; at < 2 * BYTES; at += 128 << 10) {
            mprotect(memory + at, 64 << 10, PROT_READ | PROT_WRITE);
            memset(memory + at, 1, 64 << 10);
        }
    } else if (!strcmp(kind, "small_maps")) { // below what is watched each, with a hole behind it
        for (size_t had = 0; had < BYTES; had += 96 << 10) {
            char* memory = map_anonymous((96 << 10) + PAGE);
            mprotect(memory + (96 << 10), PAGE, PROT_NONE);
            memset(memory, 1, 96 << 10);
        }
    } else if (!strcmp(kind, "raw")) { // past every hook
        char* memory =
            (char*)syscall(SYS_mmap, NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) abort();
        memset(memory, 1, BYTES);
    } else if (!strcmp(kind, "read_only")) {
        char* memory = map_anonymous(BYTES);
        memset(memory, 1, BYTES);
        mprotect(memory, BYTES, PROT_READ);
    } else if (!strcmp(kind, "nodes")) {
        for (size_t had = 0; had < BYTES; had += 64)
            memset(malloc(48), 1, 48);
    } else if (!strcmp(kind, "middle_blocks")) { // below --area-minimum each
        for (size_t had = 0; had < BYTES; had += 100 << 10)
            memset(malloc(100 << 10), 1, 100 << 10);
    } else if (!strcmp(kind, "rows")) {
        for (size_t had = 0; had < BYTES; had += 6000)
            memset(malloc(6000), 1, 6000);
    } else {
        abort();
    }
}

static void leave_smaps(void) {
    static char text[1 << 16];
    const int in = open("/proc/self/smaps", O_RDONLY),
              out = open("smaps", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t got; (got = read(in, text, sizeof text)) > 0;)
        if (write(out, text, (size_t)got) != got) abort();
    close(in);
    close(out);
}

int main(int count, char** words) {
    if (count != 2) return 2;
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i == 2) have(words[1]);
    }
    leave_smaps();
    return core_end();
}
