// A preloaded library of somebody else's, as Darshan, heaptrack or a sanitizer are: it stands before
// functions of the C library, looks up what is behind them in its constructor or at the first call, and may
// be called before that.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int (*next_open)(const char*, int, ...);
static ssize_t (*next_read)(int, void*, size_t);
static ssize_t (*next_write)(int, const void*, size_t);
static void* (*next_mmap)(void*, size_t, int, int, int, off_t);
static void* (*next_malloc)(size_t);
static void* (*next_calloc)(size_t, size_t);
static void (*next_free)(void*);
static int (*next_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
static int (*next_lock)(pthread_mutex_t*);
static int (*next_compare)(const char*, const char*);
static int (*next_stat)(const char*, struct stat*);
static int (*next_lstat)(const char*, struct stat*);
static int (*next_fstat)(int, struct stat*);
static ssize_t (*next_readlink)(const char*, char*, size_t);
static FILE* (*next_fopen)(const char*, const char*);
static char reserve[1 << 16];
static size_t reserved;
static volatile int looking, ready; // the compiler believes that dlsym calls nobody back

static void look_up(void) {
    if (ready || looking) return;
    looking = 1;
    // As the sanitizers do: names that are not there, for which the loader allocates a message.
    dlsym(RTLD_NEXT, "no_such_function_of_anybody");
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit); // through whoever is behind us, before we are ready
    *(void**)&next_open = dlsym(RTLD_NEXT, "open");
    *(void**)&next_read = dlsym(RTLD_NEXT, "read");
    *(void**)&next_write = dlsym(RTLD_NEXT, "write");
    *(void**)&next_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void**)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void**)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void**)&next_free = dlsym(RTLD_NEXT, "free");
    *(void**)&next_create = dlsym(RTLD_NEXT, "pthread_create");
    *(void**)&next_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void**)&next_compare = dlsym(RTLD_NEXT, "strcmp");
    *(void**)&next_stat = dlsym(RTLD_NEXT, "stat");
    *(void**)&next_lstat = dlsym(RTLD_NEXT, "lstat");
    *(void**)&next_fstat = dlsym(RTLD_NEXT, "fstat");
    *(void**)&next_readlink = dlsym(RTLD_NEXT, "readlink");
    *(void**)&next_fopen = dlsym(RTLD_NEXT, "fopen");
    ready = 1;
    looking = 0;
}

#ifdef EARLY // as all that have a constructor
__attribute__((constructor(101))) static void start(void) { look_up(); }
#endif
#define NEXT(name)                                                                                           \
    if (!next_##name) look_up()

// As libfaketime: what its functions need goes in its destructor, before that of a library behind it.
static const char* gone;
__attribute__((destructor)) static void end(void) { gone = "gone"; }
#define NEXT_OF_FILES(name)                                                                                  \
    if (gone) _exit(99);                                                                                     \
    NEXT(name)

static void* from_reserve(size_t bytes) {
    void* block = reserve + reserved;
    reserved += (bytes + 15) & ~(size_t)15;
    if (reserved > sizeof reserve) abort();
    return block;
}

int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int mode = va_arg(list, int);
    va_end(list);
    NEXT_OF_FILES(open);
    return next_open(path, flags, mode);
}
ssize_t read(int file, void* to, size_t bytes) {
    NEXT_OF_FILES(read);
    return next_read(file, to, bytes);
}
ssize_t write(int file, const void* from, size_t bytes) {
    NEXT_OF_FILES(write);
    return next_write(file, from, bytes);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
    NEXT(mmap);
    return next_mmap(address, bytes, protection, flags, file, offset);
}
void* malloc(size_t bytes) {
    NEXT(malloc);
    return next_malloc ? next_malloc(bytes) : from_reserve(bytes);
}
void* calloc(size_t count, size_t bytes) {
    NEXT(calloc);
    return next_calloc ? next_calloc(count, bytes) : from_reserve(count * bytes);
}
void free(void* block) {
    NEXT(free);
    if ((char*)block >= reserve && (char*)block < reserve + sizeof reserve) return;
    if (next_free) next_free(block);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
    NEXT(create);
    return next_create(thread, attributes, body, argument);
}
// Not there until it was looked up, as in a sanitizer: who calls it too early dies.
int pthread_mutex_lock(pthread_mutex_t* mutex) {
    NEXT(lock);
    return next_lock(mutex);
}
int strcmp(const char* one, const char* other) {
    NEXT(compare);
    return next_compare(one, other);
}
int stat(const char* path, struct stat* there) {
    NEXT_OF_FILES(stat);
    return next_stat(path, there);
}
int lstat(const char* path, struct stat* there) {
    NEXT_OF_FILES(lstat);
    return next_lstat(path, there);
}
int fstat(int file, struct stat* there) {
    NEXT_OF_FILES(fstat);
    return next_fstat(file, there);
}
ssize_t readlink(const char* path, char* to, size_t bytes) {
    NEXT_OF_FILES(readlink);
    return next_readlink(path, to, bytes);
}
FILE* fopen(const char* path, const char* mode) {
    NEXT_OF_FILES(fopen);
    return next_fopen(path, mode);
}
