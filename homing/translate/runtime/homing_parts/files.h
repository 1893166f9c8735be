/* Files of each rank. */

#ifdef HOMING_MPI
/* A name that the program gave, and what this rank has instead. */
typedef struct own_file {
    char *name, *path;
    int copied, descriptor; /* a copy of its own; else the file itself, open */
    struct own_file* next;
} own_file;

static struct {
    own_file* all;
    char* folder;
    int count;
} files = {NULL, NULL, 0};

static char* text_of(const char* format, const char* first, long second) {
    char* made = NULL;
    if (asprintf(&made, format, first, second) < 0) fail("out of memory");
    return made;
}

static int copy_file(const char* from, const char* to) {
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) return 0;
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) fail("%s cannot be written: ranks need copies of files", to);
    static char block[1 << 16];
    for (ssize_t got; (got = read(in, block, sizeof block)) > 0;)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(out, block + done, (size_t)(got - done))) < 0)
                fail("%s cannot be written: ranks need copies of files", to);
    close(in);
    close(out);
    return 1;
}

static own_file* file_named(const char* name) {
    for (own_file* file = files.all; file; file = file->next)
        if (strcmp(file->name, name) == 0) return file;
    own_file* made = need(calloc(1, sizeof *made));
    made->name = need(strdup(name));
    made->descriptor = -1;
    made->next = files.all;
    files.all = made;
    return made;
}

static void remove_files(void) {
    while (files.all) {
        own_file* file = files.all;
        files.all = file->next;
        if (file->copied) unlink(file->path);
        free(file->name);
        free(file->path);
        free(file);
    }
    if (files.folder) rmdir(files.folder);
    free(files.folder);
    files.folder = NULL;
}

static const char* copy_of(own_file* file) {
    if (!files.folder) {
        const char* where = getenv("TMPDIR");
        files.folder = text_of("%s/homing-rank%ld-XXXXXX", where && *where ? where : "/tmp", process.rank);
        if (!mkdtemp(files.folder)) fail("%s cannot be made: ranks need copies of files", files.folder);
        atexit(remove_files);
    }
    if (!file->copied) {
        free(file->path);
        file->path = text_of("%s/%ld", files.folder, files.count++);
        file->copied = 1;
    }
    if (!copy_file(file->name, file->path)) unlink(file->path);
    return file->path;
}

const char* homing_own_file(const char* name, int use) {
    homing_start();
    if (process.ranks == 1) return name;
    /* What the program did before is done on all ranks, and rank 0 goes on when the others have their copies.
     */
    MPI_Barrier(MPI_COMM_WORLD);
    const char* own = name;
    struct stat status;
    if (process.rank > 0 && (stat(name, &status) != 0 || S_ISREG(status.st_mode))) {
        own_file* file = file_named(name);
        if (use == HOMING_CHANGED) {
            own = copy_of(file);
        } else if (use == HOMING_ASKED_FOR && file->copied) {
            own = file->path;
        } else {
            if (file->copied) unlink(file->path);
            file->copied = 0;
            if (file->descriptor >= 0) close(file->descriptor);
            file->descriptor = open(name, O_RDONLY | O_CLOEXEC);
            free(file->path);
            file->path = file->descriptor >= 0 ? text_of("/proc/self/%sfd/%ld", "", file->descriptor)
                                               : text_of("%s.%ld.missing", name, process.rank);
            own = file->path;
        }
    } else if (process.rank > 0 && use == HOMING_CHANGED && !S_ISDIR(status.st_mode)) {
        own = "/dev/null";
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return own;
}
#else
const char* homing_own_file(const char* name, int use) {
    (void)use;
    return name;
}
#endif

void* homing_fopen(const char* name, const char* mode) {
    const int changes = strpbrk(mode, "wa+") != NULL;
    return fopen(homing_own_file(name, changes ? HOMING_CHANGED : HOMING_ONLY_READ), mode);
}

int homing_remove(const char* name) { return remove(homing_own_file(name, HOMING_CHANGED)); }

void homing_share_bytes(void* value, size_t bytes) {
#ifdef HOMING_MPI
    MPI_Bcast(value, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    (void)value;
    (void)bytes;
#endif
}
