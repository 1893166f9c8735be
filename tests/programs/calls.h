// Every function of the C library whose system call reads or writes memory of the program, with arguments in
// a watched array that no thread has touched since the region began: a page that is taken away there would
// make it fail with EFAULT. Each is called twice, in serial code and in a region, which must end alike.
//
// calls_*.c hold the calls, a line or a few each; tests/python/test_entries.py knows that none is forgotten.
#ifndef CALLS_H
#define CALLS_H

#include "core.h"
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

// The array: every argument has a part of its own, which is larger than what is protected at once.
enum { part = 64 * 1024, parts = 12 };
static char* array;
static int preparing; // arguments are written; otherwise they must be left alone
static int arguments;
static size_t sizes[parts];
static char initial[parts][part];

static inline void* place(const void* contents, size_t bytes) {
    char* const at = array + (size_t)arguments * part;
    if (arguments == parts || bytes > part) abort();
    if (preparing) {
        memset(at, 0, bytes);
        if (contents) memcpy(at, contents, bytes);
        memcpy(initial[arguments], at, bytes);
        sizes[arguments] = bytes;
    }
    ++arguments;
    return at;
}
#define IN(type, ...) ((type*)place(&(type){__VA_ARGS__}, sizeof(type)))
#define OUT(type) ((type*)place(NULL, sizeof(type)))
#define SPACE(bytes) ((void*)place(NULL, (bytes)))
#define P(text) ((char*)place((text), strlen(text) + 1))

typedef long Run(void);
struct call {
    const char* name;
    Run* run;
};
static struct call calls[512];
static int call_count;

// One call as an expression, or as statements that return its result. Descriptors and pointers are not
// compared: only whether there is one.
#define CALLS(name, ...)                                                                                     \
    static long call_##name(void) { __VA_ARGS__ }                                                            \
    __attribute__((constructor)) static void add_##name(void) {                                              \
        calls[call_count++] = (struct call){#name, call_##name};                                             \
    }
#define CALL(name, ...) CALLS(name, return (long)(__VA_ARGS__);)

static inline long closed(int descriptor) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    errno = error;
    return descriptor < 0 ? -1 : 0;
}
static inline long is_there(const void* pointer) { return pointer ? 0 : -1; }
static inline long some(long result) { return result < 0 ? -1 : 0; }
static inline long closed_stream(FILE* file) {
    const int error = errno;
    if (file) fclose(file);
    errno = error;
    return file ? 0 : -1;
}

static inline long seek(int descriptor, long result) {
    lseek(descriptor, 0, SEEK_SET);
    return result;
}

static char folder[] = "/tmp/calls-XXXXXX";
static char path_in_folder[64];
static inline const char* in_folder(const char* name) {
    snprintf(path_in_folder, sizeof path_in_folder, "%s/%s", folder, name);
    return path_in_folder;
}
static int file;    // 64 KiB of data
static int scratch; // an empty file
static int zero;
static int ends[2]; // a pipe that does not block
static int pair[2]; // two sockets
static int queue_of_messages;
static mqd_t posix_queue;
static const char nowhere[] = "/nonexistent/file";

// The list lies in the array, and so do the buffers that it names.
enum { much = 40000 };
static inline struct iovec* list(void) {
    void* const first = SPACE(100);
    void* const second = SPACE(much);
    const struct iovec both[2] = {{first, 100}, {second, much}};
    return (struct iovec*)place(both, sizeof both);
}

static inline void begin_calls(void) {
    static char bytes[part];
    core_start();
    array = (char*)aligned_alloc(part, (size_t)parts * part);
    memset(array, 0, (size_t)parts * part);
    expect(mkdtemp(folder) != NULL, "mkdtemp");
    for (int i = 0; i < part; ++i)
        bytes[i] = (char)(i * 7);
    file = open(in_folder("file"), O_RDWR | O_CREAT, 0600);
    expect(write(file, bytes, sizeof bytes) == part, "write the file");
    lseek(file, 0, SEEK_SET);
    unlink(in_folder("file"));
    scratch = open(in_folder("scratch"), O_RDWR | O_CREAT, 0600);
    unlink(in_folder("scratch"));
    zero = open("/dev/zero", O_RDONLY);
    expect(pipe2(ends, O_NONBLOCK) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0,
           "pipe and sockets");
    const struct timeval second = {1, 0};
    setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    queue_of_messages = msgget(IPC_PRIVATE, 0600);
    char name[64];
    snprintf(name, sizeof name, "/homing-calls-%ld", (long)getpid());
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 128};
    posix_queue = mq_open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attributes);
    mq_unlink(name);
}

struct outcome {
    long result;
    int error;
};
static inline struct outcome run_call(const struct call* call) {
    arguments = 0;
    errno = 0;
    const long result = call->run();
    return (struct outcome){result, result == -1 ? errno : 0};
}

// All calls, or the one that the program is given the name of.
static inline int run_calls(int count, char** words) {
    const char* only = count > 1 ? words[1] : NULL;
    int done = 0;
    for (int turn = 0, at = 0; at < call_count; ++turn) {
        core_step(turn % CORE_ITERATIONS);
        // A few turns first: the regions must be known before anything is protected in them.
        const struct call* call = NULL;
        while (turn >= 8 && at < call_count && !call) {
            call = &calls[at++];
            if (only && strcmp(call->name, only) != 0) call = NULL;
        }
        struct outcome serial = {0, 0};
        struct outcome in_region = {0, 0};
        if (call) {
            preparing = 1;
            serial = run_call(call);
            preparing = 0;
            for (int i = 0; i < arguments; ++i)
                memcpy(array + (size_t)i * part, initial[i], sizes[i]);
        }
#pragma omp parallel for num_threads(3) schedule(static)
        for (long i = 0; i < (long)parts * part; i += 64) // ordinary use
            array[i] = (char)(array[i] + 0);
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 1 && call) in_region = run_call(call);
            core_read_share();
        }
        if (!call) continue;
        ++done;
        if (serial.result == in_region.result && serial.error == in_region.error) continue;
        printf("wrong: %s %ld %s, in a region %ld %s\n", call->name, serial.result, strerror(serial.error),
               in_region.result, strerror(in_region.error));
        ++core_wrong;
    }
    msgctl(queue_of_messages, IPC_RMID, NULL);
    rmdir(folder);
    printf("%d calls\n", done);
    return core_end();
}

#endif
