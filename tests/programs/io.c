// System calls whose buffers are watched arrays, from inside regions, by every thread on its own part, and in
// serial code. A page that is taken away makes them fail with EFAULT or come back short; neither may be seen.
//
// The first argument is the call, one of the table at the end; "where" is serial or region. What a call finds
// in the array (names, offsets, sets) is put there in serial code before: in the region nobody touches it
// before the call does. (calls_*.c do the same with every single function.)
#include "core.h"
#include <aio.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { threads = 3, bytes = 256 * 1024, area = 1 << 20 };
static int file; // bytes of a known pattern
static char file_name[64];
static int scratch[threads]; // an empty file a thread
static char* buffers;        // threads * area, watched

static char pattern(long i) { return (char)(i * 7 + i / 251); }

static void check(const char* buffer, long length, const char* what) {
    for (long i = 0; i < length; ++i)
        if (buffer[i] != pattern(i)) {
            expect(0, what);
            return;
        }
}

static void fill(char* buffer, long length) {
    for (long i = 0; i < length; ++i)
        buffer[i] = pattern(i);
}

static void do_read(int t, char* b) {
    const int own = open(file_name, O_RDONLY);
    expect(read(own, b, bytes) == bytes, "read");
    close(own);
    check(b, bytes, "read data");
    (void)t;
}
static void do_pread(int t, char* b) {
    expect(pread(file, b, bytes, 0) == bytes, "pread");
    check(b, bytes, "pread data");
    (void)t;
}
static void do_readv(int t, char* b) {
    struct iovec parts[3] = {{b, 100000}, {b + 100000, 5}, {b + 100005, bytes - 100005}};
    expect(preadv(file, parts, 3, 0) == bytes, "preadv");
    check(b, bytes, "preadv data");
    memset(b, 0, bytes);
    const int own = open(file_name, O_RDONLY);
    expect(readv(own, parts, 3) == bytes, "readv");
    close(own);
    check(b, bytes, "readv data");
    (void)t;
}
static void do_write(int t, char* b) {
    fill(b, bytes);
    expect(lseek(scratch[t], 0, SEEK_SET) == 0, "lseek");
    expect(write(scratch[t], b, bytes) == bytes, "write");
    memset(b, 0, bytes);
    expect(pread(scratch[t], b, bytes, 0) == bytes, "pread what was written");
    check(b, bytes, "written data");
    struct iovec parts[2] = {{b, 70000}, {b + 70000, bytes - 70000}};
    expect(pwritev(scratch[t], parts, 2, 0) == bytes && pwrite(scratch[t], b, bytes, 0) == bytes,
           "pwrite, pwritev");
}
static void do_stdio(int t, char* b) {
    FILE* in = fopen(file_name, "rb");
    expect(fread(b, 1, bytes, in) == bytes, "fread");
    fclose(in);
    check(b, bytes, "fread data");
    FILE* out = fdopen(dup(scratch[t]), "wb+");
    rewind(out);
    expect(fwrite(b, 1, bytes, out) == bytes, "fwrite");
    expect(fflush(out) == 0, "fflush");
    memset(b, 0, bytes);
    rewind(out);
    expect(fread(b, 1, bytes, out) == bytes, "fread what was written");
    check(b, bytes, "data through stdio");
    fclose(out);
}
static void do_unbuffered(int t, char* b) {
    FILE* in = fopen(file_name, "rb");
    setvbuf(in, b + bytes, _IOFBF, bytes); // the stream's own buffer lies in the array
    char small[100];
    for (long i = 0; i < 1000; ++i) {
        expect(fread(small, 1, sizeof small, in) == sizeof small, "fread through a watched buffer");
        expect(small[7] == pattern(i * 100 + 7), "its data");
    }
    fclose(in);
    FILE* text = fdopen(dup(scratch[t]), "wb+");
    rewind(text);
    for (int i = 0; i < 1000; ++i)
        fprintf(text, "%d line %s\n", i, "of text");
    fflush(text);
    rewind(text);
    for (int i = 0; i < 1000; ++i) {
        expect(fgets(b + i * 100, 100, text) != NULL, "fgets");
        expect(atoi(b + i * 100) == i, "line");
    }
    fclose(text);
}
// What was printed into such a buffer is written when the stream is flushed.
static FILE* buffered[threads][2];
static void prepare_flush(int t, char* b) {
    for (int i = 0; i < 2; ++i) {
        if (!buffered[t][i]) {
            buffered[t][i] = fdopen(dup(scratch[t]), "w");
            if (i)
                setbuffer(buffered[t][i], b + bytes, bytes);
            else
                setbuf(buffered[t][i], b + 3 * bytes);
        }
        for (int line = 0; line < 10; ++line)
            fprintf(buffered[t][i], "%d line of text\n", line);
    }
}
static void do_flush(int t, char* b) {
    for (int i = 0; i < 2; ++i) {
        struct stat before, after;
        expect(fstat(scratch[t], &before) == 0 && fflush(buffered[t][i]) == 0, "fflush");
        expect(fstat(scratch[t], &after) == 0 && after.st_size == before.st_size + 150, "what was flushed");
    }
    (void)b;
}
static void prepare_sendfile(int t, char* b) {
    *(off_t*)(void*)(b + 4096) = 100; // the offset lies in the array
    *(loff_t*)(void*)(b + 65536) = 0;
    const struct iovec part = {b + 8192, 4000};
    memcpy(b + 131072, &part, sizeof part);
    fill(b + 8192, 4000);
    (void)t;
}
static void do_sendfile(int t, char* b) {
    int ends[2];
    expect(pipe(ends) == 0, "pipe");
    off_t* offset = (off_t*)(void*)(b + 4096);
    expect(sendfile(ends[1], file, offset, 4000) == 4000, "sendfile");
    expect(*offset == 4100, "sendfile offset");
    expect(read(ends[0], b + 262144, 4000) == 4000, "read from the pipe");
    expect(b[262144] == pattern(100), "sendfile data");
    loff_t* in = (loff_t*)(void*)(b + 65536);
    loff_t out = 0;
    const ssize_t copied = copy_file_range(file, in, scratch[t], &out, bytes, 0);
    expect(copied == bytes || (copied == -1 && errno != EFAULT), "copy_file_range");
    expect(vmsplice(ends[1], (struct iovec*)(void*)(b + 131072), 1, 0) == 4000, "vmsplice");
    expect(read(ends[0], b + 327680, 4000) == 4000 && b[327680] == pattern(0), "vmsplice data");
    close(ends[0]);
    close(ends[1]);
}
static void do_socket(int t, char* b) {
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    fill(b, bytes);
    const long part = 32768;
    for (long at = 0; at + part <= bytes; at += part) {
        char* to = b + bytes + at;
        struct iovec from_vector = {b + at, (size_t)part}, to_vector = {to, (size_t)part};
        struct msghdr from_message = {.msg_iov = &from_vector, .msg_iovlen = 1},
                      to_message = {.msg_iov = &to_vector, .msg_iovlen = 1};
        switch (at / part % 3) {
        case 0:
            expect(send(ends[0], b + at, (size_t)part, 0) == part, "send");
            expect(recv(ends[1], to, (size_t)part, MSG_WAITALL) == part, "recv");
            break;
        case 1:
            expect(sendto(ends[0], b + at, (size_t)part, 0, NULL, 0) == part, "sendto");
            expect(recvfrom(ends[1], to, (size_t)part, MSG_WAITALL, NULL, NULL) == part, "recvfrom");
            break;
        default:
            expect(sendmsg(ends[0], &from_message, 0) == part, "sendmsg");
            expect(recvmsg(ends[1], &to_message, MSG_WAITALL) == part, "recvmsg");
        }
    }
    check(b + bytes, bytes, "data through a socket");
    socklen_t* length = (socklen_t*)(void*)(b + 5000 * 4);
    int* value = (int*)(void*)(b + 10000 * 4);
    *length = sizeof *value;
    expect(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, value, length) == 0 && *value == SOCK_STREAM,
           "getsockopt");
    close(ends[0]);
    close(ends[1]);
    (void)t;
}
static void do_process_vm(int t, char* b) {
    fill(b, bytes);
    struct iovec local = {b + bytes, bytes}, remote = {b, bytes};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got < 0 && (errno == EPERM || errno == ENOSYS)) return; // a container forbids it
    expect(got == bytes, "process_vm_readv");
    check(b + bytes, bytes, "data by process_vm_readv");
    (void)t;
}
static void prepare_random(int t, char* b) {
    memset(b, 0, 131072);
    (void)t;
}
static void do_random(int t, char* b) {
    expect(getentropy(b + 65536, 256) == 0, "getentropy");
    expect(getrandom(b, 65536, 0) == 65536, "getrandom");
    long zeros = 0;
    for (long i = 0; i < 65536; ++i)
        zeros += b[i] == 0;
    expect(zeros < 1000, "random bytes");
    (void)t;
}
static void prepare_names(int t, char* b) {
    strcpy(b + 100 * 4096, "/proc/self/fd/1");
    strcpy(b + 20 * 4096, file_name);
    strcpy(b + 40 * 4096, "/dev/null");
    (void)t;
}
static void do_names(int t, char* b) {
    const int null = open(b + 40 * 4096, O_RDWR);
    expect(null >= 0, "open with a name in the array");
    close(null);
    char* link = b + 3 * 4096 + 4000; // across a page
    expect(readlink(b + 100 * 4096, link, 4000) > 0, "readlink");
    struct stat* status = (struct stat*)(void*)(b + 8 * 4096);
    expect(stat(b + 20 * 4096, status) == 0 || errno == ENOENT, "stat"); // unlinked for some
    expect(fstat(file, status) == 0 && status->st_size == bytes, "fstat");
    struct statx* more = (struct statx*)(void*)(b + 24 * 4096);
    expect(statx(file, "", AT_EMPTY_PATH, STATX_SIZE, more) == 0 && more->stx_size == bytes, "statx");
    struct statvfs* system = (struct statvfs*)(void*)(b + 28 * 4096);
    expect(statvfs("/", system) == 0, "statvfs");
    expect(getcwd(b + 30 * 4096, 8192) == b + 30 * 4096, "getcwd");
    expect(access(b + 40 * 4096, R_OK) == 0, "access");
    FILE* opened = fopen(b + 40 * 4096, "r");
    expect(opened != NULL, "fopen with a name in the array");
    if (opened) fclose(opened);
    expect(realpath(b + 40 * 4096, b + 44 * 4096) != NULL && strcmp(b + 44 * 4096, "/dev/null") == 0,
           "realpath");
    expect(gethostname(b + 50 * 4096, 4096) == 0, "gethostname");
    expect(uname((struct utsname*)(void*)(b + 51 * 4096)) == 0, "uname");
    (void)t;
}
static int ready[2]; // a pipe with something in it
static void prepare_wait(int t, char* b) {
    if (!ready[1]) expect(pipe(ready) == 0 && write(ready[1], "x", 1) == 1, "a pipe");
    const struct pollfd entry = {ready[0], POLLIN, 0};
    memcpy(b + 5 * 4096, &entry, sizeof entry);
    fd_set* set = (fd_set*)(void*)(b + 7 * 4096);
    FD_ZERO(set);
    FD_SET(ready[0], set);
    const struct timeval second = {1, 0};
    memcpy(b + 8 * 4096, &second, sizeof second);
    const struct epoll_event event = {EPOLLIN, {.fd = 77}};
    memcpy(b + 9 * 4096, &event, sizeof event);
    const struct timespec nap = {0, 1000};
    memcpy(b + 17 * 4096, &nap, sizeof nap);
    memcpy(b + 33 * 4096, &nap, sizeof nap);
    (void)t;
}
static void do_wait(int t, char* b) {
    expect(clock_nanosleep(CLOCK_MONOTONIC, 0, (struct timespec*)(void*)(b + 33 * 4096), NULL) == 0,
           "clock_nanosleep");
    int* ends = (int*)(void*)(b + 4096);
    expect(pipe(ends) == 0, "pipe into the array");
    struct pollfd* polls = (struct pollfd*)(void*)(b + 5 * 4096);
    expect(poll(polls, 1, 1000) == 1 && polls->revents == POLLIN, "poll");
    expect(select(ready[0] + 1, (fd_set*)(void*)(b + 7 * 4096), NULL, NULL,
                  (struct timeval*)(void*)(b + 8 * 4096)) == 1,
           "select");
    const int queue = epoll_create1(0);
    expect(epoll_ctl(queue, EPOLL_CTL_ADD, ready[0], (struct epoll_event*)(void*)(b + 9 * 4096)) == 0,
           "epoll_ctl");
    struct epoll_event* events = (struct epoll_event*)(void*)(b + 15 * 4096);
    expect(epoll_wait(queue, events, 16, 1000) == 1 && events->data.fd == 77, "epoll_wait");
    close(queue);
    expect(nanosleep((struct timespec*)(void*)(b + 17 * 4096), NULL) == 0, "nanosleep");
    close(ends[0]);
    close(ends[1]);
    (void)t;
}
static void do_ask(int t, char* b) {
    expect(getrusage(RUSAGE_SELF, (struct rusage*)(void*)(b + 4096)) == 0, "getrusage");
    expect(times((struct tms*)(void*)(b + 3 * 4096)) != (clock_t)-1, "times");
    expect(sysinfo((struct sysinfo*)(void*)(b + 5 * 4096)) == 0, "sysinfo");
    expect(getrlimit(RLIMIT_NOFILE, (struct rlimit*)(void*)(b + 7 * 4096)) == 0, "getrlimit");
    expect(sched_getaffinity(0, sizeof(cpu_set_t), (cpu_set_t*)(void*)(b + 11 * 4096)) == 0,
           "sched_getaffinity");
    expect(pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), (cpu_set_t*)(void*)(b + 13 * 4096)) == 0,
           "pthread_getaffinity_np");
    sigset_t* mask = (sigset_t*)(void*)(b + 15 * 4096);
    expect(pthread_sigmask(SIG_SETMASK, NULL, mask) == 0, "pthread_sigmask into the array");
    expect(sigpending((sigset_t*)(void*)(b + 17 * 4096)) == 0, "sigpending");
    struct sigaction* action = (struct sigaction*)(void*)(b + 19 * 4096);
    expect(sigaction(SIGUSR1, NULL, action) == 0, "sigaction into the array");
    (void)t;
}
static void do_raw(int t, char* b) {
    expect(syscall(SYS_pread64, file, b, bytes, 0L) == bytes, "raw pread64");
    check(b, bytes, "raw data");
    expect(syscall(SYS_pwrite64, scratch[t], b, bytes, 0L) == bytes, "raw pwrite64");
    struct iovec part = {b, bytes};
    expect(syscall(SYS_preadv, scratch[t], &part, 1, 0L, 0L) == bytes, "raw preadv");
    expect(syscall(SYS_getrandom, b + 8192, 40960, 0) == 40960, "raw getrandom");
}
static void do_aio(int t, char* b) {
    struct aiocb request;
    memset(&request, 0, sizeof request);
    request.aio_fildes = file;
    request.aio_buf = b;
    request.aio_nbytes = bytes;
    expect(aio_read(&request) == 0, "aio_read");
    const struct aiocb* list[] = {&request};
    while (aio_error(&request) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    expect(aio_return(&request) == bytes, "aio_return");
    check(b, bytes, "asynchronous data");
    (void)t;
}
static void do_directory(int t, char* b) {
    const int directory = open("/proc/self", O_RDONLY | O_DIRECTORY);
    long entries = 0, got;
    while ((got = syscall(SYS_getdents64, directory, b + 4000, 65536)) > 0)
        entries += got;
    expect(got == 0 && entries > 500, "getdents64");
    close(directory);
    (void)t;
}

static const struct {
    const char* name;
    void (*run)(int, char*);
    void (*prepare)(int, char*);
} calls[] = {{"read", do_read, NULL},
             {"pread", do_pread, NULL},
             {"readv", do_readv, NULL},
             {"write", do_write, NULL},
             {"stdio", do_stdio, NULL},
             {"buffer", do_unbuffered, NULL},
             {"flush", do_flush, prepare_flush},
             {"sendfile", do_sendfile, prepare_sendfile},
             {"socket", do_socket, NULL},
             {"vm", do_process_vm, NULL},
             {"random", do_random, prepare_random},
             {"names", do_names, prepare_names},
             {"wait", do_wait, prepare_wait},
             {"ask", do_ask, NULL},
             {"raw", do_raw, NULL},
             {"aio", do_aio, NULL},
             {"directory", do_directory, NULL}};

int main(int count, char** arguments) {
    const char* name = count > 1 ? arguments[1] : "read";
    const int serial = count > 2 && strcmp(arguments[2], "serial") == 0;
    void (*run)(int, char*) = NULL;
    void (*prepare)(int, char*) = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
        if (strcmp(calls[i].name, name) == 0) {
            run = calls[i].run;
            prepare = calls[i].prepare;
        }
    if (!run) return 2;
    core_start();
    buffers = (char*)malloc((size_t)threads * area);
    memset(buffers, 0, (size_t)threads * area);
    strcpy(file_name, "/tmp/io-XXXXXX");
    file = mkstemp(file_name);
    fill(buffers, bytes);
    expect(write(file, buffers, bytes) == bytes, "the file");
    for (int t = 0; t < threads; ++t) {
        char other[] = "/tmp/io-XXXXXX";
        scratch[t] = mkstemp(other);
        unlink(other);
    }
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int t = 0; t < threads; ++t) // ordinary use by the same owners
            for (long at = 0; at < area; at += 64)
                buffers[(size_t)t * area + at] += 1;
        if (i % 2) continue;
        for (int t = 0; t < threads && prepare; ++t)
            prepare(t, buffers + (size_t)t * area);
        if (serial) {
            run(i % threads, buffers + (size_t)(i % threads) * area);
            continue;
        }
#pragma omp parallel num_threads(threads)
        {
            const int t = omp_get_thread_num();
            run(t, buffers + (size_t)t * area);
        }
    }
    unlink(file_name);
    printf("done %s\n", name);
    return core_end();
}
