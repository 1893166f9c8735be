// An executable without OpenMP that loads libraries with it: libgomp or libomp arrives by dlopen with
// RTLD_LOCAL; several libraries, each perhaps with a runtime of its own; a library whose arrays go away at
// dlclose and come back.
//
// Arguments: once | again (dlclose and load again) | both | thread | namespace, then the libraries.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void* load(const char* path, int flags) {
    void* handle = dlopen(path, flags);
    if (!handle) {
        printf("%s\n", dlerror());
        fflush(stdout);
    }
    return handle;
}

static uint64_t run(void* handle, int iterations) {
    uint64_t (*step)(int) = NULL;
    *(void**)&step = dlsym(handle, "library_run");
    return step ? step(iterations) : 0;
}

static void release(void* handle) {
    void (*free_it)(void) = NULL;
    *(void**)&free_it = dlsym(handle, "library_free");
    if (free_it) free_it();
    // The runtime stays: its idle threads still run its code, and would crash without homing, too.
    dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    dlopen("libgomq.so.1", RTLD_LAZY | RTLD_NOLOAD); // a second libgomp under another name (test_hooks.py)
    dlopen("libomp.so.5", RTLD_LAZY | RTLD_NOLOAD);
    dlclose(handle);
}

static void* threaded(void* path) {
    void* handle = load((const char*)path, RTLD_NOW | RTLD_LOCAL);
    if (handle) {
        printf("%016llx\n", (unsigned long long)run(handle, 40));
        release(handle);
    }
    return NULL;
}

int main(int count, char** arguments) {
    if (count < 3) return 2;
    const char* how = arguments[1];
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, threaded, arguments[2]);
        pthread_join(thread, NULL);
        threaded(arguments[2]);
        return 0;
    }
    if (strcmp(how, "namespace") == 0) {
        void* handle = dlmopen(LM_ID_NEWLM, arguments[2], RTLD_NOW);
        if (!handle) return 3;
        printf("%016llx\n", (unsigned long long)run(handle, 40));
        return 0;
    }
    if (strcmp(how, "both") == 0) {
        void* handles[8];
        for (int i = 2; i < count; ++i)
            handles[i - 2] = load(arguments[i], RTLD_NOW | RTLD_LOCAL);
        for (int round = 0; round < 30; ++round)
            for (int i = 2; i < count; ++i)
                printf("%016llx\n", (unsigned long long)run(handles[i - 2], 2));
        for (int i = 2; i < count; ++i)
            release(handles[i - 2]);
        return 0;
    }
    for (int round = 0; round < (strcmp(how, "again") == 0 ? 6 : 1); ++round)
        for (int i = 2; i < count; ++i) {
            void* handle = load(arguments[i], RTLD_LAZY | RTLD_LOCAL);
            if (!handle) return 3;
            printf("%016llx\n", (unsigned long long)run(handle, 40));
            release(handle);
        }
    return 0;
}
