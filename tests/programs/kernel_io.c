// Input that the kernel does by itself, asked for with system calls that no library stands behind (liburing
// and libaio are often linked statically): the buffer's address is in a structure. Set up before the arrays
// are used, or in the middle.
//
// aio | uring, late
#include "core.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { block_bytes = 4 << 20, bytes = 256 << 10 };
static char* block;
static int file;

static long call(long number, long a, long b, long c, long d, long e, long f) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    const long result = syscall(number, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
#endif
}

static void* ring_map(int ring, size_t size, off_t at) {
    return (void*)call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, at);
}

static int ring = -1;
static struct io_uring_params parameters;
static char* queue;
static struct io_uring_sqe* entries;
static aio_context_t context;

static int prepare(int uring) {
    if (!uring) return (int)call(SYS_io_setup, 8, (long)&context, 0, 0, 0, 0);
    ring = (int)call(SYS_io_uring_setup, 8, (long)&parameters, 0, 0, 0, 0);
    if (ring < 0) return ring;
    queue =
        (char*)ring_map(ring, parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe),
                        IORING_OFF_SQ_RING);
    entries = (struct io_uring_sqe*)ring_map(ring, parameters.sq_entries * sizeof *entries, IORING_OFF_SQES);
    return 0;
}

static unsigned* in_queue(unsigned offset) { return (unsigned*)(queue + offset); }

// Bytes read into the middle of the block, or a negative errno.
static long read_block(void) {
    char* buffer = block + block_bytes / 4;
    if (ring < 0) {
        struct iocb request = {.aio_fildes = (unsigned)file,
                               .aio_lio_opcode = IOCB_CMD_PREAD,
                               .aio_buf = (uint64_t)(uintptr_t)buffer,
                               .aio_nbytes = bytes};
        struct iocb* list[] = {&request};
        struct io_event event;
        const long submitted = call(SYS_io_submit, (long)context, 1, (long)list, 0, 0, 0);
        if (submitted != 1) return submitted;
        return call(SYS_io_getevents, (long)context, 1, 1, (long)&event, 0, 0) == 1 ? event.res : -EIO;
    }
    unsigned* tail = in_queue(parameters.sq_off.tail);
    const unsigned slot = *tail & *in_queue(parameters.sq_off.ring_mask);
    entries[slot] = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = file, .addr = (uint64_t)(uintptr_t)buffer, .len = bytes};
    in_queue(parameters.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    call(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
    unsigned* head = in_queue(parameters.cq_off.head);
    if (*head == __atomic_load_n(in_queue(parameters.cq_off.tail), __ATOMIC_ACQUIRE)) return -EIO;
    const struct io_uring_cqe* done = (struct io_uring_cqe*)(queue + parameters.cq_off.cqes);
    const long result = done[*head & *in_queue(parameters.cq_off.ring_mask)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "aio";
    core_start();
    block = (char*)aligned_alloc(4096, block_bytes);
    memset(block, 0, block_bytes);
    char name[] = "/tmp/kernel-io-XXXXXX";
    const int made = mkstemp(name);
    expect(write(made, block, bytes) == bytes, "write");
    file = open(name, O_RDONLY);
    unlink(name);
    const int first = count > 2 ? CORE_ITERATIONS / 2 : 0;
    int failed = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        if (i == first && prepare(strcmp(how, "uring") == 0) < 0) printf("not here\n"); // in a container, say
        core_step(i);
#pragma omp parallel for num_threads(3)
        for (long k = 0; k < block_bytes; k += 64)
            block[k] += 0;
        if (context == 0 && ring < 0) continue;
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 1) {
                const long got = read_block();
                if (got != bytes && failed++ == 0) printf("read: %ld\n", got);
            }
            core_read_share();
        }
    }
    printf("failed %d\n", failed);
    return core_end();
}
