// What dlerror() has to tell is there until the program asks: whatever functions of the C library it calls
// for the first time in between.
#include "core.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void* nothing(void* argument) { return argument; }

static void use(int which) {
    char buffer[64] = "";
    struct iovec piece = {buffer, sizeof buffer};
    struct sigaction action;
    struct stat status;
    sigset_t mask;
    pthread_t thread;
    const int file = open("/dev/null", O_RDWR);
    switch (which) {
    case 0:
        (void)!read(file, buffer, sizeof buffer);
        break;
    case 1:
        (void)!write(file, buffer, sizeof buffer);
        break;
    case 2:
        (void)!readv(file, &piece, 1);
        break;
    case 3:
        (void)!pwrite(file, buffer, sizeof buffer, 0);
        break;
    case 4:
        (void)!access("/dev/null", R_OK);
        break;
    case 5:
        (void)!fstat(file, &status);
        break;
    case 6:
        (void)!getcwd(buffer, sizeof buffer);
        break;
    case 7:
        sigaction(SIGUSR1, NULL, &action);
        break;
    case 8:
        sigprocmask(SIG_BLOCK, NULL, &mask);
        break;
    case 9:
        signal(SIGUSR2, SIG_DFL);
        break;
    case 10:
        munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        break;
    case 11:
        free(aligned_alloc(64, 64));
        break;
    case 12:
        (void)!system("true");
        break;
    case 13:
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
        break;
    default:
        setvbuf(stdin, NULL, _IOFBF, 4096);
    }
    close(file);
}

int main(void) {
    enum { uses = 15 };
    core_start();
    core_run(CORE_ITERATIONS / 2);
    for (int which = 0; which < uses; ++which) {
        expect(dlopen("/nowhere/library.so", RTLD_NOW) == NULL, "no such library");
        use(which);
        const char* told = dlerror();
        printf("%d %s\n", which, told ? told : "nothing is told");
    }
    core_run(CORE_ITERATIONS / 2);
    expect(dlerror() == NULL, "no error of others");
    return core_end();
}
