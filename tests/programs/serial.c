// Serial code between the regions uses an array whose second half no region touches: what a window has armed
// there waits for this code.
//
// Through the kernel: read | file (fread, fwrite) | line (getline, printf) | pieces (readv) | names (stat) |
// mutex | raw (the program's own syscall instruction) | number (syscall) | control (ioctl). By other means:
// mapped (a file is copied into it) | touch | masked (SIGSEGV blocked) | handler (the program takes faults of
// its own) | stack (a thread's) | altstack | jump | fork | vfork | spawn | library (that makes system calls
// of its own) | protect | remap | limit | exit (in a region) | thread (reads while regions run)
#include "core.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// Homing looks at the first iterations most.
enum { DEEDS = 4, bytes = 8 << 20, half = bytes / 2, page = 4096, stack_bytes = 1 << 18 };
static char* array;
static const char* how;
static int zero, null, file;
static char* path;
static volatile int stop;
static unsigned long sum;

/// The second half, another part of it every time.
static char* part(int i) { return array + half + (long)(i % 8) * (half / 8); }

#ifdef RAW
#include "library_raw.c"
#endif

static void* walk(void* memory) {
    volatile char* const at = (char*)memory;
    for (long i = 0; i < half / 8; i += page)
        at[i] = (char)(at[i] + 1);
    return memory;
}

static void* in_own_stack(void* from) {
    volatile char deep[stack_bytes / 2];
    for (size_t i = 0; i < sizeof deep; i += page)
        deep[i] = 1;
    usleep(100);
    return from;
}

static sigjmp_buf out;
static void on_usr1(int number) {
    volatile char deep[3 * page];
    for (size_t i = 0; i < sizeof deep; i += page)
        deep[i] = (char)number;
    if (strcmp(how, "jump") == 0) siglongjmp(out, 1);
}

static char* forbidden;
static void on_segv(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    if ((char*)info->si_addr != forbidden) _exit(99);
    mprotect(forbidden, page, PROT_READ | PROT_WRITE);
}

static void* read_all_the_time(void* nothing) {
    for (int i = 0; !stop; ++i) {
        expect(read(zero, part(i) + page / 2, half / 8 - page) == half / 8 - page, "read by a thread");
        usleep(500);
    }
    return nothing;
}

static void deed(int i) {
    char* const at = part(i);
    const long count = half / 8;
    if (strcmp(how, "read") == 0) {
        expect(pread(file, at, (size_t)count, 0) == count, "pread");
        expect(write(null, at, (size_t)count) == count, "write");
        expect(read(zero, part(i + 3), (size_t)count) == count, "read");
    } else if (strcmp(how, "file") == 0) {
        FILE* const stream = fopen(path, "r+");
        expect(stream && fread(at, 1, (size_t)count, stream) == (size_t)count, "fread");
        expect(stream && fseek(stream, 0, SEEK_SET) == 0 &&
                   fwrite(part(i + 2), 1, (size_t)count, stream) == (size_t)count,
               "fwrite");
        if (stream) fclose(stream);
    } else if (strcmp(how, "line") == 0) {
        static char* line;
        static size_t room;
        FILE* const stream = fopen(path, "w+");
        if (!stream) abort();
        memset(at, 'a' + i % 26, (size_t)count - 1);
        at[count - 1] = '\0';
        expect(fprintf(stream, "%s\n", at) == count, "fprintf");
        char* const text = part(i + 1);
        text[page] = '\0';
        memset(text, 'b', page);
        expect(fputs(text, stream) >= 0 && fputc('\n', stream) == '\n', "fputs");
        rewind(stream);
        expect(getline(&line, &room, stream) == count, "getline");
        expect(fgets(part(i + 2), (int)count, stream) && part(i + 2)[page] == '\n', "fgets");
        fclose(stream);
        memset(at, 0, (size_t)count);
        memset(part(i + 1), 0, page);
        memset(part(i + 2), 0, (size_t)count);
    } else if (strcmp(how, "pieces") == 0) {
        struct iovec* const list = (struct iovec*)(void*)at;
        for (int k = 0; k < 4; ++k)
            list[k] = (struct iovec){part(i + 1 + k) + 100, 3 * page};
        expect(readv(zero, list, 4) == 12 * page, "readv");
        memset(list, 0, 4 * sizeof *list);
    } else if (strcmp(how, "names") == 0) {
        strcpy(at, path);
        struct stat* const about = (struct stat*)(void*)part(i + 1);
        expect(stat(at, about) == 0 && about->st_size > 0, "stat");
        expect(realpath(at, part(i + 2)) != NULL, "realpath");
        expect(getcwd(part(i + 3), page) != NULL, "getcwd");
        memset(at, 0, page);
        memset(about, 0, sizeof *about);
        memset(part(i + 2), 0, page);
        memset(part(i + 3), 0, page);
    } else if (strcmp(how, "mutex") == 0) {
        pthread_mutex_t* const mutex = (pthread_mutex_t*)(void*)at;
        pthread_mutex_init(mutex, NULL);
        expect(pthread_mutex_lock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0, "mutex");
        memset(mutex, 0, sizeof *mutex);
        struct timespec* const time = (struct timespec*)(void*)part(i + 1);
        *time = (struct timespec){0, 1000};
        expect(nanosleep(time, NULL) == 0, "nanosleep");
        memset(time, 0, sizeof *time);
#ifdef RAW
    } else if (strcmp(how, "raw") == 0) {
        expect(own_read(zero, at, count) == count, "read by an instruction of its own");
#endif
    } else if (strcmp(how, "number") == 0) {
        expect(syscall(SYS_read, zero, at, count) == count, "read by its number");
        struct iovec here = {part(i + 1), (size_t)count}, there = {part(i + 2), (size_t)count};
        const long got = syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L);
        expect(got == count || errno == EPERM || errno == ENOSYS, "process_vm_readv by its number");
    } else if (strcmp(how, "control") == 0) {
        int ends[2];
        expect(pipe(ends) == 0 && write(ends[1], "abc", 3) == 3, "pipe");
        expect(ioctl(ends[0], FIONREAD, (int*)(void*)at) == 0 && *(int*)(void*)at == 3, "ioctl");
        *(int*)(void*)at = 0;
        close(ends[0]);
        close(ends[1]);
    } else if (strcmp(how, "mapped") == 0) {
        char* const map = (char*)mmap(NULL, (size_t)count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        expect(map != MAP_FAILED, "mmap");
        memcpy(at, map, (size_t)count);
        memcpy(map, part(i + 1), (size_t)count);
        expect(msync(map, (size_t)count, MS_SYNC) == 0 && munmap(map, (size_t)count) == 0, "msync");
    } else if (strcmp(how, "touch") == 0 || strcmp(how, "exit") == 0) {
        walk(at);
    } else if (strcmp(how, "masked") == 0) {
        sigset_t all, before;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &before);
        walk(at);
        sigprocmask(SIG_SETMASK, &before, NULL);
    } else if (strcmp(how, "handler") == 0) {
        if (i == 1) { // while homing learns
            struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
            sigaction(SIGSEGV, &action, NULL);
        }
        if (i >= 1) {
            mprotect(forbidden, page, PROT_NONE);
            forbidden[0] = (char)i;
        }
        walk(at);
    } else if (strcmp(how, "stack") == 0) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, at, stack_bytes);
        expect(pthread_create(&thread, &attributes, in_own_stack, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
        memset(at, 0, stack_bytes);
    } else if (strcmp(how, "altstack") == 0 || strcmp(how, "jump") == 0) {
        stack_t stack = {.ss_sp = at, .ss_size = stack_bytes};
        expect(sigaltstack(&stack, NULL) == 0, "sigaltstack");
        struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        if (sigsetjmp(out, 1) == 0) raise(SIGUSR1);
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, NULL);
        memset(at, 0, stack_bytes);
    } else if (strcmp(how, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            walk(at);
            _exit(read(zero, part(i + 1), (size_t)count) == count ? 4 : 5);
        }
        int* const status = (int*)(void*)part(i + 2);
        expect(waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 4, "fork");
        *status = 0;
    } else if (strcmp(how, "vfork") == 0 || strcmp(how, "spawn") == 0) {
        char** const words = (char**)(void*)at;
        words[0] = (char*)"true";
        words[1] = NULL;
        pid_t child;
        if (strcmp(how, "spawn") == 0) {
            expect(posix_spawn((pid_t*)(void*)part(i + 1), "/bin/true", NULL, NULL, words, NULL) == 0,
                   "spawn");
            child = *(pid_t*)(void*)part(i + 1);
            *(pid_t*)(void*)part(i + 1) = 0;
        } else if ((child = vfork()) == 0) {
            execv("/bin/true", words);
            _exit(1);
        }
        int status = -1;
        expect(waitpid(child, &status, 0) == child && status == 0, "the child");
        memset(words, 0, 2 * sizeof *words);
    } else if (strcmp(how, "library") == 0) {
        // Its first call of the kernel is made as soon as it is there.
        void* const library = i == 1 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library) {
            long (*const reads)(int, char*, long) = (long (*)(int, char*, long))dlsym(library, "own_read");
            for (int k = 0; k < 8; ++k)
                expect(reads(zero, part(k), count) == count, "read by a library that came");
        }
    } else if (strcmp(how, "protect") == 0) {
        expect(mprotect(at, (size_t)count, PROT_READ) == 0, "mprotect");
        sum += (unsigned char)at[page];
        expect(mprotect(at, (size_t)count, PROT_READ | PROT_WRITE) == 0, "mprotect back");
    } else if (strcmp(how, "remap") == 0) {
        array = (char*)realloc(array, bytes + (size_t)(i % 2 ? half : 0));
        if (!array) abort();
        walk(part(i));
    } else if (strcmp(how, "limit") == 0 && i == 13) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        getrlimit(RLIMIT_DATA, &limit);
        limit.rlim_cur = 1 << 20; // less than there is
        expect(setrlimit(RLIMIT_DATA, &limit) == 0, "setrlimit");
        walk(at);
    }
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "read";
    core_start();
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    static char made[] = "/tmp/homing-serial-XXXXXX";
    file = mkstemp(made);
    path = strcmp(how, "library") == 0 && count > 2 ? arguments[2] : made;
    array = (char*)aligned_alloc(page, bytes);
    forbidden = (char*)mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!array || file < 0 || forbidden == MAP_FAILED) abort();
    memset(array, 0, bytes);
    expect(write(file, array, half / 8) == half / 8, "the file");
    pthread_t reader;
    const int reads = strcmp(how, "thread") == 0;
    if (reads) pthread_create(&reader, NULL, read_all_the_time, NULL);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel for schedule(static)
        for (long at = 0; at < half; at += 64)
            array[at] = (char)(array[at] + 1);
        if (strcmp(how, "exit") == 0 && i == 3) {
            unlink(made);
#pragma omp parallel
            if (omp_get_thread_num() == 0) exit(7);
        }
        for (int k = 0; k < DEEDS; ++k)
            deed(DEEDS * i + k);
    }
    stop = 1;
    if (reads) pthread_join(reader, NULL);
    for (long at = 0; at < bytes; at += 64)
        sum = sum * 31 + (unsigned char)array[at];
    printf("sum %016lx\n", sum);
    unlink(made);
    return core_end();
}
