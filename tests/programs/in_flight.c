// System calls that run while regions begin and end, in threads outside OpenMP, and what becomes of them.
//
// early (a thread waits for data into a block since before the first region) | fresh (threads read into
// blocks that they have just allocated) | handled (a thread that waits for data gets signals, whose handler
// makes calls of its own) | jumped (a handler jumps out of the call) | cancelled | forked (while others are
// in calls) | vfork (a child that becomes another program) | child (waitpid) | accept | error (getsockopt
// takes the error away) | datagram (recvfrom takes it out of the queue)
#include "core.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { bytes = 1 << 20, page64 = 65536 };
static int ends[2], back[2];
static int zero, null;
static volatile int stop;
static char* buffer;
static char* other;
static const char* how;

// A thread receives a piece of `bytes`, again and again.
static void* receive(void* nothing) {
    const int fresh = strcmp(how, "fresh") == 0;
    for (int round = 0;; ++round) {
        char* const block = fresh ? (char*)malloc(bytes) : buffer; // main uses the rest of buffer meanwhile
        if (!block) abort();
        for (long got = 0; got < bytes;) {
            const ssize_t part = read(ends[0], block + got, (size_t)(bytes - got));
            if (part == 0) return nothing;
            if (part < 0) {
                expect(0, strerrorname_np(errno));
                return nothing;
            }
            got += part;
        }
        for (long i = 0; i < bytes; i += 4096)
            if (block[i] != (char)round) {
                expect(0, "data of this round");
                break;
            }
        if (fresh) free(block);
        expect(write(back[1], "x", 1) == 1, "write back");
    }
}

static void* read_blocks(void* seed) {
    unsigned random = (unsigned)(uintptr_t)seed;
    while (!stop) {
        const size_t size = 150000 + (size_t)rand_r(&random) % 3000000;
        char* const block = (char*)malloc(size);
        if (!block) abort();
        expect(read(zero, block, size) == (ssize_t)size, "read into a fresh block");
        expect(write(null, block, size) == (ssize_t)size, "write of it");
        free(block);
        usleep(2000); // where blocks come and go all the time, no window opens
    }
    return seed;
}

static void on_signal(int number) {
    static __thread int turn;
    (void)number;
    char* const at = other + (turn++ % 8) * page64;
    expect(read(zero, at, 5000) == 5000, "read in a handler");
    expect(write(null, at, 5000) == 5000, "write in a handler");
}

static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t may_jump;
static void jump(int number) {
    (void)number;
    if (may_jump) siglongjmp(out, 1);
}

static void* wait_in_vain(void* block) {
    (void)!read(ends[0], block, bytes);
    return block;
}

static void* jump_out(void* nothing) {
    for (volatile int i = 0; !stop; ++i) {
        if (sigsetjmp(out, 1) == 0) {
            may_jump = 1;
            (void)!read(ends[0], buffer + i % 16 * page64, page64); // nothing ever comes
        }
        may_jump = 0;
    }
    return nothing;
}

static void send_round(int round) {
    static char piece[bytes];
    memset(piece, round, sizeof piece);
    for (long sent = 0; sent < bytes;) {
        const ssize_t part = write(ends[1], piece + sent, (size_t)(bytes - sent));
        if (part <= 0) {
            expect(0, "send");
            return;
        }
        sent += part;
    }
}

// Calls that had their effect when they fail, and a result in the array that nobody has touched yet.
static struct sockaddr_in address;
static int listener;
static int expected_error; // of the socket that was refused
static int connected(void) {
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    expect(connect(made, (struct sockaddr*)&address, sizeof address) == 0, "connect");
    return made;
}
static int refused(void) {
    struct sockaddr_in nobody = address;
    nobody.sin_port = htons(1);
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    expect(connect(made, (struct sockaddr*)&nobody, sizeof nobody) == -1, "nobody listens");
    expected_error = errno == EINPROGRESS ? ECONNREFUSED : 0;
    usleep(3000);
    return made;
}
static int once(pid_t child, int given, void* at, socklen_t* length) {
    if (strcmp(how, "child") == 0) return waitpid(child, (int*)at, 0) == child && WEXITSTATUS(*(int*)at) == 3;
    if (strcmp(how, "accept") == 0) {
        const int got = accept(listener, (struct sockaddr*)at, length);
        if (got >= 0) close(got);
        return got >= 0 && ((struct sockaddr_in*)at)->sin_family == AF_INET;
    }
    if (strcmp(how, "error") == 0)
        return getsockopt(given, SOL_SOCKET, SO_ERROR, at, length) == 0 && *(int*)at == expected_error &&
               *length == sizeof(int);
    return recvfrom(given, (char*)at + page64, 9000, MSG_DONTWAIT, (struct sockaddr*)at, length) == 9000;
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "early";
    const int receives =
        strcmp(how, "early") == 0 || strcmp(how, "fresh") == 0 || strcmp(how, "handled") == 0;
    const int reads = strcmp(how, "fresh") == 0 || strcmp(how, "forked") == 0;
    const int jumps = strcmp(how, "jumped") == 0, cancels = strcmp(how, "cancelled") == 0;
    const int onces = strcmp(how, "child") == 0 || strcmp(how, "accept") == 0 || strcmp(how, "error") == 0 ||
                      strcmp(how, "datagram") == 0;
    pthread_t receiver, readers[2];
    core_start();
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    expect(pipe(ends) == 0 && pipe(back) == 0, "pipes");
    buffer = (char*)aligned_alloc(page64, 3 * bytes);
    other = (char*)aligned_alloc(page64, bytes);
    memset(buffer, 1, 3 * bytes);
    memset(other, 1, bytes);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr*)&address, sizeof address);
    listen(listener, 4);
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr*)&address, &length);
    int datagrams[2];
    expect(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0, "sockets");
    struct sigaction action = {.sa_handler = jumps ? jump : on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    if (receives) pthread_create(&receiver, NULL, receive, NULL);
    if (jumps) pthread_create(&receiver, NULL, jump_out, NULL);
    if (reads)
        for (long i = 0; i < 2; ++i)
            pthread_create(&readers[i], NULL, read_blocks, (void*)(i + 1));
    usleep(5000);
    core_run(1); // homing knows the process; nothing is protected in its first regions
    for (int times = 0; times < 20 && jumps; ++times) {
        pthread_kill(receiver, SIGUSR1);
        usleep(500);
    }
    if (strcmp(how, "vfork") == 0) {
        char* words[] = {(char*)"true", NULL};
        const pid_t child = vfork();
        if (child == 0) {
            execv("/bin/true", words);
            _exit(1);
        }
        int status = -1;
        expect(waitpid(child, &status, 0) == child && status == 0, "the child of vfork");
    }
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        pid_t child = 0;
        if (strcmp(how, "child") == 0 && (child = fork()) == 0) _exit(3);
        if (cancels) pthread_create(&receiver, NULL, wait_in_vain, buffer);
        int given = -1;
        if (strcmp(how, "accept") == 0) given = connected();
        if (strcmp(how, "error") == 0) given = refused();
        socklen_t* const size = (socklen_t*)(void*)(buffer + 5 * page64);
#pragma omp parallel for num_threads(3) schedule(static)
        for (long at = 0; at < 3 * bytes; at += 512) // ordinary use
            if (!receives || at >= bytes) buffer[at] = (char)(buffer[at] + 0);
        *size = strcmp(how, "error") == 0 ? sizeof(int) : 16;
        if (strcmp(how, "datagram") == 0) {
            static char datagram[9000];
            expect(send(datagrams[0], datagram, sizeof datagram, 0) == sizeof datagram, "send");
        }
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 1) {
                if (strcmp(how, "handled") == 0 || jumps)
                    for (int times = 0; times < 3; ++times) {
                        pthread_kill(receiver, SIGUSR1);
                        usleep(200);
                    }
                if (strcmp(how, "forked") == 0) {
                    const pid_t made = fork();
                    if (made == 0) _exit(read(zero, buffer, bytes) == bytes ? 4 : 5);
                    int status = 0;
                    expect(waitpid(made, &status, 0) == made && WEXITSTATUS(status) == 4, "a child's calls");
                }
                if (receives) {
                    send_round(i);
                    char byte;
                    expect(read(back[0], &byte, 1) == 1, "read back");
                }
                if (onces)
                    expect(once(child, strcmp(how, "datagram") == 0 ? datagrams[1] : given,
                                buffer + 2 * bytes, size),
                           "a call that has had its effect");
            }
            core_read_share();
        }
        if (given >= 0) close(given);
        if (cancels) {
            void* result = NULL;
            pthread_cancel(receiver);
            expect(pthread_join(receiver, &result) == 0 && result == PTHREAD_CANCELED, "cancelled");
        }
    }
    stop = 1;
    if (receives) close(ends[1]);
    if (jumps) pthread_kill(receiver, SIGUSR1);
    if (receives || jumps) pthread_join(receiver, NULL);
    if (reads)
        for (int i = 0; i < 2; ++i)
            pthread_join(readers[i], NULL);
    return core_end();
}
