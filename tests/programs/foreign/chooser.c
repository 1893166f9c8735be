// A library that chooses among functions (IFUNC) when it is loaded, and calls half of the C library to do so:
// libraries behind it are relocated then, those in front of it are not. Says "chosen" where all calls did
// what they should.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[4096];
static int failed;
#define CHECK(condition)                                                                                     \
    if (!(condition) && !failed) failed = __LINE__

static void nothing(void) {}

static int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void use_files(void) {
    const int file = open("/proc/self/maps", O_RDONLY);
    struct stat there;
    CHECK(file >= 0 && read(file, buffer, 64) == 64 && pread(file, buffer, 64, 0) == 64);
    CHECK(fcntl(file, F_GETFD) == 0 && fstat(file, &there) == 0 && ioctl(file, FIONREAD, buffer) <= 0);
    close(file);
    const int folder = openat(AT_FDCWD, "/", O_RDONLY);
    CHECK(folder >= 0 && access("/", F_OK) == 0 && stat("/", &there) == 0);
    dprintf(folder, "%d", 1);
    close(folder);
    CHECK(readlink("/proc/self/exe", buffer, sizeof buffer) > 0 && realpath("/", buffer));
    CHECK(getcwd(buffer, sizeof buffer) && access("/no such file", F_OK) == -1);
    FILE* stream = fopen("/proc/self/maps", "r");
    CHECK(stream && fread(buffer, 1, 64, stream) == 64);
    if (stream) fclose(stream);
    DIR* list = opendir("/");
    CHECK(list);
    if (list) closedir(list);
}

static void use_memory(void) {
    void* block = malloc(10);
    void* aligned = NULL;
    CHECK(block && (block = realloc(block, 1 << 20)));
    CHECK((block = reallocarray(block, 2, 1 << 20)));
    free(block);
    CHECK(posix_memalign(&aligned, 64, 100) == 0);
    free(aligned);
    free(calloc(100, 100000));
    char* pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && madvise(pages, 1 << 20, MADV_DONTNEED) == 0);
    CHECK(mprotect(pages, 1 << 20, PROT_READ | PROT_WRITE) == 0);
    CHECK((pages = mremap(pages, 1 << 20, 2 << 20, MREMAP_MAYMOVE)) != MAP_FAILED && (pages[0] = 1));
    CHECK(munmap(pages, 2 << 20) == 0);
}

static void use_threads(void) {
    static pthread_mutex_t lock;
    static pthread_cond_t condition;
    static pthread_rwlock_t readers;
    static pthread_barrier_t barrier;
    static pthread_once_t once;
    static sem_t semaphore;
    pthread_attr_t attributes;
    CHECK(pthread_mutex_init(&lock, NULL) == 0 && pthread_mutex_lock(&lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0 && pthread_cond_init(&condition, NULL) == 0);
    CHECK(pthread_cond_signal(&condition) == 0 && pthread_rwlock_init(&readers, NULL) == 0);
    CHECK(pthread_rwlock_rdlock(&readers) == 0 && pthread_barrier_init(&barrier, NULL, 1) == 0);
    CHECK(pthread_once(&once, nothing) == 0 && sem_init(&semaphore, 0, 1) == 0 && sem_wait(&semaphore) == 0);
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 1 << 20) == 0);
}

static void use_signals(void) {
    struct sigaction action;
    sigset_t set;
    stack_t stack;
    CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL && signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    CHECK(sigset(SIGUSR1, SIG_IGN) == SIG_DFL && ssignal(SIGUSR1, SIG_DFL) == SIG_IGN);
    CHECK(sigemptyset(&set) == 0 && sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && sigaltstack(NULL, &stack) == 0);
    CHECK(syscall(SYS_gettid) == getpid() && prctl(PR_GET_DUMPABLE) >= 0);
    const struct timespec moment = {0, 1};
    CHECK(nanosleep(&moment, NULL) == 0);
}

static void use_processes(void) {
    char* words[] = {"true", NULL};
    pid_t child = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, words, NULL) == 0 && status_of(child) == 0);
    child = fork();
    if (child == 0) _exit(0);
    CHECK(status_of(child) == 0);
#define IN_CHILD(call)                                                                                       \
    child = fork();                                                                                          \
    if (child == 0) {                                                                                        \
        call;                                                                                                \
        _exit(1);                                                                                            \
    }                                                                                                        \
    CHECK(status_of(child) == 0)
    IN_CHILD(execv("/bin/true", words));
    IN_CHILD(execl("/bin/true", "true", (char*)NULL));
    IN_CHILD(execlp("/bin/true", "true", (char*)NULL));
    IN_CHILD(execle("/bin/true", "true", (char*)NULL, words));
}

static int choice(void) { return 1; }
static int (*choose(void))(void) {
    unsetenv("LD_PRELOAD"); // children are not what this is about
    use_files();
    use_memory();
    use_threads();
    use_signals();
    use_processes();
    return choice;
}
int chosen(void) __attribute__((ifunc("choose")));

__attribute__((constructor)) static void say(void) {
    char text[40];
    const int bytes = failed ? snprintf(text, sizeof text, "failed in line %d\n", failed)
                             : snprintf(text, sizeof text, "chosen\n");
    if (write(1, text, (size_t)bytes) < 0) abort();
}
