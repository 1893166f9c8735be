// Calls with names of files: of such that are not there, or of / and /dev/null (calls.h).
#include "calls.h"
#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <mntent.h>
#include <nl_types.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

static int terminal; // the master's end, and the slave's
static int slave;

int __open(const char*, int, ...);
int __open64(const char*, int, ...);
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
CALL(open, closed(open(P("/dev/null"), O_RDONLY)))
CALL(open64, closed(open64(P("/dev/null"), O_RDONLY)))
CALL(openat, closed(openat(AT_FDCWD, P("/dev/null"), O_RDONLY)))
CALL(openat64, closed(openat64(AT_FDCWD, P("/dev/null"), O_RDONLY)))
CALL(__open, closed(__open(P("/dev/null"), O_RDONLY)))
CALL(__open64, closed(__open64(P("/dev/null"), O_RDONLY)))
CALL(__open_2, closed(__open_2(P("/dev/null"), O_RDONLY)))
CALL(__open64_2, closed(__open64_2(P("/dev/null"), O_RDONLY)))
CALL(__openat_2, closed(__openat_2(AT_FDCWD, P("/dev/null"), O_RDONLY)))
CALL(__openat64_2, closed(__openat64_2(AT_FDCWD, P("/dev/null"), O_RDONLY)))
CALL(creat, closed(creat(P("/dev/null"), 0600)))
CALL(creat64, closed(creat64(P("/dev/null"), 0600)))
CALL(fopen, closed_stream(fopen(P("/dev/null"), "r")))
CALL(fopen64, closed_stream(fopen64(P("/dev/null"), "r")))
FILE* _IO_fopen(const char*, const char*);
FILE* __setmntent(const char*, const char*);
CALL(_IO_fopen, closed_stream(_IO_fopen(P("/dev/null"), "r")))
CALL(__setmntent, closed_stream(__setmntent(P("/dev/null"), "r")))
CALL(freopen, closed_stream(freopen(P("/dev/null"), "r", fopen("/dev/zero", "r"))))
CALL(freopen64, closed_stream(freopen64(P("/dev/null"), "r", fopen("/dev/zero", "r"))))
CALLS(opendir, DIR* const found = opendir(P("/")); const long result = is_there(found);
      if (found) closedir(found); return result;)
static int none(const struct dirent* entry) { return entry == NULL; }
static int none64(const struct dirent64* entry) { return entry == NULL; }
static struct dirent** entries;
static struct dirent64** entries64;
CALLS(scandir, const long result = scandir(P("/"), &entries, none, NULL); free(entries); return result;)
CALLS(scandir64, const long result = scandir64(P("/"), &entries64, none64, NULL); free(entries64);
      return result;)
CALLS(scandirat, const long result = scandirat(AT_FDCWD, P("/"), &entries, none, NULL); free(entries);
      return result;)
CALLS(scandirat64, const long result = scandirat64(AT_FDCWD, P("/"), &entries64, none64, NULL);
      free(entries64); return result;)
static int met(const char* path, const struct stat* about, int kind) {
    return path && about ? 7 + kind - kind : 0;
}
static int met64(const char* path, const struct stat64* about, int kind) {
    return path && about ? 7 + kind - kind : 0;
}
static int met_in(const char* path, const struct stat* about, int kind, struct FTW* where) {
    return where ? met(path, about, kind) : 0;
}
static int met_in64(const char* path, const struct stat64* about, int kind, struct FTW* where) {
    return where ? met64(path, about, kind) : 0;
}
CALL(ftw, ftw(P("/dev"), met, 4))
CALL(ftw64, ftw64(P("/dev"), met64, 4))
CALL(nftw, nftw(P("/dev"), met_in, 4, 0))
CALL(nftw64, nftw64(P("/dev"), met_in64, 4, 0))
CALLS(glob, glob_t found; const int result = glob(P("/dev/nul?"), 0, NULL, &found);
      if (result == 0) globfree(&found); return result;)
CALLS(glob64, glob64_t found; const int result = glob64(P("/dev/nul?"), 0, NULL, &found);
      if (result == 0) globfree64(&found); return result;)
CALLS(setmntent, FILE* const found = setmntent(P("/dev/null"), "r"); const long result = is_there(found);
      if (found) endmntent(found); return result;)
CALL(catopen, catopen(P(nowhere), 0) == (nl_catd)-1 ? -1 : 0)
CALL(access, access(P("/dev/null"), R_OK))
CALL(eaccess, eaccess(P("/dev/null"), R_OK))
CALL(euidaccess, euidaccess(P("/dev/null"), R_OK))
CALL(faccessat, faccessat(AT_FDCWD, P("/dev/null"), R_OK, 0))
CALL(unlink, unlink(P(nowhere)))
CALL(unlinkat, unlinkat(AT_FDCWD, P(nowhere), 0))
CALL(rmdir, rmdir(P(nowhere)))
CALL(remove, remove(P(nowhere)))
CALL(rename, rename(P(nowhere), P(nowhere)))
CALL(renameat, renameat(AT_FDCWD, P(nowhere), AT_FDCWD, P(nowhere)))
CALL(renameat2, renameat2(AT_FDCWD, P(nowhere), AT_FDCWD, P(nowhere), 0))
CALL(link, link(P(nowhere), P(nowhere)))
CALL(linkat, linkat(AT_FDCWD, P(nowhere), AT_FDCWD, P(nowhere), 0))
CALL(symlink, symlink(P("target"), P(nowhere)))
CALL(symlinkat, symlinkat(P("target"), AT_FDCWD, P(nowhere)))
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
CALL(readlink, readlink(P("/proc/self/exe"), SPACE(100), 100))
CALL(__readlink_chk, __readlink_chk(P("/proc/self/exe"), SPACE(100), 100, 100))
CALL(readlinkat, readlinkat(AT_FDCWD, P("/proc/self/exe"), SPACE(100), 100))
CALL(__readlinkat_chk, __readlinkat_chk(AT_FDCWD, P("/proc/self/exe"), SPACE(100), 100, 100))
CALL(mkdir, mkdir(P(nowhere), 0700))
CALL(mkdirat, mkdirat(AT_FDCWD, P(nowhere), 0700))
CALL(mkfifo, mkfifo(P(nowhere), 0600))
CALL(mkfifoat, mkfifoat(AT_FDCWD, P(nowhere), 0600))
CALL(mknod, mknod(P(nowhere), S_IFREG | 0600, 0))
CALL(mknodat, mknodat(AT_FDCWD, P(nowhere), S_IFREG | 0600, 0))
CALL(chdir, chdir(P(".")))
CALL(chroot, chroot(P(nowhere)))
CALL(chmod, chmod(P(nowhere), 0600))
CALL(lchmod, lchmod(P(nowhere), 0600))
CALL(fchmodat, fchmodat(AT_FDCWD, P(nowhere), 0600, 0))
CALL(chown, chown(P(nowhere), 1, 1))
CALL(lchown, lchown(P(nowhere), 1, 1))
CALL(fchownat, fchownat(AT_FDCWD, P(nowhere), 1, 1, 0))
CALL(truncate, truncate(P(nowhere), 0))
CALL(truncate64, truncate64(P(nowhere), 0))
#define TIMES(type, ...) ((type*)place((type[2]){__VA_ARGS__}, sizeof(type[2])))
CALL(utime, utime(P(nowhere), IN(struct utimbuf, 1, 1)))
CALL(utimes, utimes(P(nowhere), TIMES(struct timeval, {1, 0}, {1, 0})))
CALL(lutimes, lutimes(P(nowhere), TIMES(struct timeval, {1, 0}, {1, 0})))
CALL(futimes, futimes(scratch, TIMES(struct timeval, {1, 0}, {1, 0})))
CALL(futimesat, futimesat(AT_FDCWD, P(nowhere), TIMES(struct timeval, {1, 0}, {1, 0})))
CALL(futimens, futimens(scratch, TIMES(struct timespec, {1, 0}, {1, 0})))
CALL(utimensat, utimensat(AT_FDCWD, P(nowhere), TIMES(struct timespec, {1, 0}, {1, 0}), 0))
CALL(mkstemp, closed(mkstemp(P("/nonexistent/XXXXXX"))))
CALL(mkstemp64, closed(mkstemp64(P("/nonexistent/XXXXXX"))))
CALL(mkstemps, closed(mkstemps(P("/nonexistent/XXXXXX.c"), 2)))
CALL(mkstemps64, closed(mkstemps64(P("/nonexistent/XXXXXX.c"), 2)))
CALL(mkostemp, closed(mkostemp(P("/nonexistent/XXXXXX"), 0)))
CALL(mkostemp64, closed(mkostemp64(P("/nonexistent/XXXXXX"), 0)))
CALL(mkostemps, closed(mkostemps(P("/nonexistent/XXXXXX.c"), 2, 0)))
CALL(mkostemps64, closed(mkostemps64(P("/nonexistent/XXXXXX.c"), 2, 0)))
CALL(mkdtemp, is_there(mkdtemp(P("/nonexistent/XXXXXX"))))
CALL(mktemp, mktemp(P("/nonexistent/XXXXXX"))[0] ? 0 : -1)
CALL(tmpnam, is_there(tmpnam(SPACE(L_tmpnam))))
CALL(tmpnam_r, is_there(tmpnam_r(SPACE(L_tmpnam))))
CALLS(tempnam, char* const name = tempnam(P("/tmp"), "calls");
      const int there = name && strncmp(name, "/tmp", 4) == 0; free(name); return there;)
CALL(memfd_create, closed(memfd_create(P("calls"), 0)))
CALL(pathconf, pathconf(P("/"), _PC_LINK_MAX))
CALL(ftok, ftok(P("/"), 1) == -1 ? -1 : 0)
char* __getcwd_chk(char*, size_t, size_t);
char* __getwd_chk(char*, size_t);
char* __realpath_chk(const char*, char*, size_t);
int __ttyname_r_chk(int, char*, size_t, size_t);
int __ptsname_r_chk(int, char*, size_t, size_t);
CALL(getcwd, is_there(getcwd(SPACE(4096), 4096)))
CALL(__getcwd_chk, is_there(__getcwd_chk(SPACE(4096), 4096, 4096)))
CALL(getwd, is_there(getwd(SPACE(4096))))
CALL(__getwd_chk, is_there(__getwd_chk(SPACE(4096), 4096)))
CALL(realpath, is_there(realpath(P("/dev/../dev/null"), SPACE(4096))))
CALL(__realpath_chk, is_there(__realpath_chk(P("/dev/../dev/null"), SPACE(4096), 4096)))
CALLS(canonicalize_file_name, char* const name = canonicalize_file_name(P("/dev/../dev/null"));
      const long result = is_there(name); free(name); return result;)
CALL(ttyname_r, ttyname_r(slave, SPACE(100), 100))
CALL(__ttyname_r_chk, __ttyname_r_chk(slave, SPACE(100), 100, 100))
CALL(ptsname_r, ptsname_r(terminal, SPACE(100), 100))
CALL(__ptsname_r_chk, __ptsname_r_chk(terminal, SPACE(100), 100, 100))

int main(int count, char** words) {
    begin_calls();
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(terminal);
    unlockpt(terminal);
    slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    return run_calls(count, words);
}
