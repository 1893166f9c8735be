// Calls that move data (calls.h).
#include "calls.h"
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <utmp.h>
#include <utmpx.h>

static int grams[2]; // sockets of datagrams
static FILE* stream;

ssize_t __read(int, void*, size_t);
ssize_t __write(int, const void*, size_t);
ssize_t __pread64(int, void*, size_t, off64_t);
ssize_t __pwrite64(int, const void*, size_t, off64_t);
ssize_t __send(int, const void*, size_t, int);
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, struct sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
size_t _IO_fread(void*, size_t, size_t, FILE*);
size_t _IO_fwrite(const void*, size_t, size_t, FILE*);
size_t _IO_sgetn(FILE*, void*, size_t);
int _IO_fputs(const char*, FILE*);
int _IO_puts(const char*);
CALL(read, seek(file, read(file, SPACE(much), much)))
CALL(__read, seek(file, __read(file, SPACE(much), much)))
CALL(__read_chk, seek(file, __read_chk(file, SPACE(much), much, much)))
CALL(pread, pread(file, SPACE(much), much, 5))
CALL(pread64, pread64(file, SPACE(much), much, 5))
CALL(__pread64, __pread64(file, SPACE(much), much, 5))
CALL(__pread_chk, __pread_chk(file, SPACE(much), much, 5, much))
CALL(__pread64_chk, __pread64_chk(file, SPACE(much), much, 5, much))
CALL(write, seek(scratch, write(scratch, SPACE(much), much)))
CALL(__write, seek(scratch, __write(scratch, SPACE(much), much)))
CALL(pwrite, pwrite(scratch, SPACE(much), much, 5))
CALL(pwrite64, pwrite64(scratch, SPACE(much), much, 5))
CALL(__pwrite64, __pwrite64(scratch, SPACE(much), much, 5))

CALL(readv, seek(file, readv(file, list(), 2)))
CALL(writev, seek(scratch, writev(scratch, list(), 2)))
CALL(preadv, preadv(file, list(), 2, 5))
CALL(preadv64, preadv64(file, list(), 2, 5))
CALL(preadv2, preadv2(file, list(), 2, 5, 0))
CALL(preadv64v2, preadv64v2(file, list(), 2, 5, 0))
CALL(pwritev, pwritev(scratch, list(), 2, 5))
CALL(pwritev64, pwritev64(scratch, list(), 2, 5))
CALL(pwritev2, pwritev2(scratch, list(), 2, 5, 0))
CALL(pwritev64v2, pwritev64v2(scratch, list(), 2, 5, 0))

static void send_some(int descriptor, size_t bytes) {
    static char from[much];
    expect(send(descriptor, from, bytes, 0) == (ssize_t)bytes, "send from elsewhere");
}
static long receive_some(int descriptor, long result) {
    static char to[much];
    const int error = errno;
    while (recv(descriptor, to, sizeof to, MSG_DONTWAIT) > 0) {
    }
    errno = error;
    return result;
}
CALLS(recv, send_some(pair[0], 9000); return recv(pair[1], SPACE(9000), 9000, MSG_WAITALL);)
CALLS(__recv_chk, send_some(pair[0], 9000); return __recv_chk(pair[1], SPACE(9000), 9000, 9000, MSG_WAITALL);)
CALLS(recvfrom, send_some(grams[0], 9000);
      return recvfrom(grams[1], SPACE(9000), 9000, 0, OUT(struct sockaddr_un), IN(socklen_t, 100));)
CALLS(__recvfrom_chk, send_some(grams[0], 9000);
      return __recvfrom_chk(grams[1], SPACE(9000), 9000, 9000, 0, (struct sockaddr*)OUT(struct sockaddr_un),
                            IN(socklen_t, 100));)
CALL(send, receive_some(pair[1], send(pair[0], SPACE(9000), 9000, 0)))
CALL(__send, receive_some(pair[1], __send(pair[0], SPACE(9000), 9000, 0)))
CALL(sendto,
     sendto(grams[0], SPACE(9000), 9000, 0,
            IN(struct sockaddr_un, .sun_family = AF_UNIX, .sun_path = "/none"), sizeof(struct sockaddr_un)))

// A message with name, buffers and control data, all in the array.
static struct msghdr* header(int passes, int named) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control.head), &zero, sizeof zero);
    struct msghdr head = {.msg_iov = list(), .msg_iovlen = 1};
    head.msg_control = place(passes ? &control : NULL, sizeof control);
    head.msg_controllen = sizeof control;
    if (named) {
        head.msg_name = OUT(struct sockaddr_un);
        head.msg_namelen = sizeof(struct sockaddr_un);
    }
    return (struct msghdr*)place(&head, sizeof head);
}
static long close_received(struct msghdr* message, long result) {
    const int error = errno;
    if (result >= 0)
        for (struct cmsghdr* at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(at), sizeof descriptor);
            close(descriptor);
        }
    errno = error;
    return result;
}
static void send_with_descriptor(void) {
    static char bytes[100];
    struct iovec piece = {bytes, 100};
    char control[CMSG_SPACE(sizeof(int))];
    memset(control, 0, sizeof control);
    struct msghdr head = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr* const first = CMSG_FIRSTHDR(&head);
    first->cmsg_len = CMSG_LEN(sizeof(int));
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(first), &zero, sizeof zero);
    expect(sendmsg(grams[0], &head, 0) == 100, "sendmsg from elsewhere");
}
CALLS(recvmsg, send_with_descriptor(); struct msghdr* const message = header(0, 1);
      return close_received(message, recvmsg(grams[1], message, 0));)
CALL(sendmsg, receive_some(grams[1], sendmsg(grams[0], header(1, 0), 0)))
static struct mmsghdr* header_list(int passes) {
    struct mmsghdr several[2];
    memset(several, 0, sizeof several);
    for (int i = 0; i < 2; ++i) {
        several[i].msg_hdr.msg_iov = list();
        several[i].msg_hdr.msg_iovlen = 1;
    }
    if (passes) several[1].msg_hdr.msg_iovlen = 0;
    return (struct mmsghdr*)place(several, sizeof several);
}
CALLS(recvmmsg, send_some(grams[0], 100); send_some(grams[0], 100);
      return recvmmsg(grams[1], header_list(0), 2, MSG_DONTWAIT, IN(struct timespec, 1, 0));)
CALL(sendmmsg, receive_some(grams[1], sendmmsg(grams[0], header_list(0), 2, 0)))

static long drain(long result) {
    const int error = errno;
    char bytes[8192];
    while (read(ends[0], bytes, sizeof bytes) > 0) {
    }
    errno = error;
    return result;
}
CALL(sendfile, drain(sendfile(ends[1], file, IN(off_t, 100), 4000)))
CALL(sendfile64, drain(sendfile64(ends[1], file, IN(off64_t, 100), 4000)))
CALL(splice, drain(splice(file, IN(loff_t, 100), ends[1], NULL, 4000, 0)))
CALL(vmsplice, drain(vmsplice(ends[1], list(), 1, 0)))
CALL(copy_file_range, copy_file_range(file, IN(loff_t, 0), scratch, IN(loff_t, 0), 4096, 0))
CALLS(eventfd_read, const int counter = eventfd(3, 0);
      const int result = eventfd_read(counter, OUT(eventfd_t)); close(counter); return result;)
CALLS(msgsnd, char out[128]; const int result = msgsnd(queue_of_messages,
                                                       IN(
                                                           struct {
                                                               long type;
                                                               char text[64];
                                                           },
                                                           1, "x"),
                                                       64, 0);
      msgrcv(queue_of_messages, out, 64, 0, IPC_NOWAIT); return result;)
CALLS(
    msgrcv,
    struct {
        long type;
        char text[64];
    } in = {1, "x"};
    msgsnd(queue_of_messages, &in, 64, 0); return msgrcv(queue_of_messages, SPACE(100), 64, 0, IPC_NOWAIT);)
static void post(void) { expect(mq_send(posix_queue, "x", 1, 3) == 0, "mq_send from elsewhere"); }
static long unpost(long result) {
    const int error = errno;
    char bytes[128];
    const struct timespec past = {1, 0};
    mq_timedreceive(posix_queue, bytes, sizeof bytes, NULL, &past);
    errno = error;
    return result;
}
CALL(mq_send, unpost(mq_send(posix_queue, SPACE(64), 64, 1)))
CALL(mq_timedsend, unpost(mq_timedsend(posix_queue, SPACE(64), 64, 1, IN(struct timespec, 1, 0))))
CALLS(mq_receive, post(); return mq_receive(posix_queue, SPACE(128), 128, OUT(unsigned));)
CALLS(mq_timedreceive, post();
      return mq_timedreceive(posix_queue, SPACE(128), 128, OUT(unsigned), IN(struct timespec, 1, 0));)
CALL(getrandom, getrandom(SPACE(much), much, 0))
CALL(getentropy, getentropy(SPACE(200), 200))
#if __GLIBC_PREREQ(2, 36)
CALLS(arc4random_buf, arc4random_buf(SPACE(9000), 9000); return 0;)
#endif
static long permitted(long result) { return result < 0 && (errno == EPERM || errno == ENOSYS) ? 0 : result; }
CALL(process_vm_readv, permitted(process_vm_readv(getpid(), list(), 1, list(), 1, 0)))
CALL(process_vm_writev, permitted(process_vm_writev(getpid(), list(), 1, list(), 1, 0)))
CALLS(mlock, void* const memory = SPACE(9000); const int result = mlock(memory, 9000); munlock(memory, 9000);
      return permitted(result);)
CALLS(mlock2, void* const memory = SPACE(9000); const int result = mlock2(memory, 9000, 0);
      munlock(memory, 9000); return permitted(result);)
CALL(updwtmp, (updwtmp(P(nowhere), OUT(struct utmp)), 0))
CALL(updwtmpx, (updwtmpx(P(nowhere), OUT(struct utmpx)), 0))
CALLS(pututline, utmpname(in_folder("utmp")); close(open(in_folder("utmp"), O_CREAT | O_RDWR, 0600));
      setutent(); return is_there(pututline(IN(struct utmp, .ut_type = USER_PROCESS, .ut_id = "x")));)
CALLS(pututxline, utmpxname(in_folder("utmp")); close(open(in_folder("utmp"), O_CREAT | O_RDWR, 0600));
      setutxent(); return is_there(pututxline(IN(struct utmpx, .ut_type = USER_PROCESS, .ut_id = "y")));)

static FILE* of_file(void) { return fopen("/dev/zero", "r"); }
CALLS(fread, FILE* const in = of_file(); const long got = (long)fread(SPACE(much), 1, much, in); fclose(in);
      return got;)
CALLS(fread_unlocked, FILE* const in = of_file();
      const long got = (long)fread_unlocked(SPACE(much), 1, much, in); fclose(in); return got;)
CALLS(__fread_chk, FILE* const in = of_file();
      const long got = (long)__fread_chk(SPACE(much), much, 1, much, in); fclose(in); return got;)
CALLS(__fread_unlocked_chk, FILE* const in = of_file();
      const long got = (long)__fread_unlocked_chk(SPACE(much), much, 1, much, in); fclose(in); return got;)
CALLS(_IO_fread, FILE* const in = of_file(); const long got = (long)_IO_fread(SPACE(much), 1, much, in);
      fclose(in); return got;)
CALLS(_IO_sgetn, FILE* const in = of_file(); const long got = (long)_IO_sgetn(in, SPACE(much), much);
      fclose(in); return got;)

// What arrived in the file.
static long written(long result) {
    struct stat now;
    const int error = errno;
    if (fflush(stream) != 0 || fstat(fileno(stream), &now) != 0) now.st_size = -1;
    rewind(stream);
    expect(ftruncate(fileno(stream), 0) == 0, "ftruncate");
    errno = error;
    return result < 0 ? result : (long)now.st_size;
}
static char* long_text(void) {
    static char text[30001];
    memset(text, 'x', sizeof text - 1);
    return P(text);
}
CALL(fwrite, written((long)fwrite(SPACE(much), 1, much, stream)))
CALL(fwrite_unlocked, written((long)fwrite_unlocked(SPACE(much), 1, much, stream)))
CALL(_IO_fwrite, written((long)_IO_fwrite(SPACE(much), 1, much, stream)))
CALL(fputs, written(fputs(long_text(), stream)))
CALL(fputs_unlocked, written(fputs_unlocked(long_text(), stream)))
CALL(_IO_fputs, written(_IO_fputs(long_text(), stream)))
CALL(fprintf, written(fprintf(stream, "%s", long_text())))
static int through_v(int function(va_list), ...) {
    va_list list_of_arguments;
    va_start(list_of_arguments, function);
    const int result = function(list_of_arguments);
    va_end(list_of_arguments);
    return result;
}
int __fprintf_chk(FILE*, int, const char*, ...);
int __dprintf_chk(int, int, const char*, ...);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
static int to_vfprintf(va_list all) { return vfprintf(stream, "%s", all); }
static int to_vfprintf_chk(va_list all) { return __vfprintf_chk(stream, 1, "%s", all); }
static int to_vdprintf(va_list all) { return vdprintf(fileno(stream), "%s", all); }
static int to_vdprintf_chk(va_list all) { return __vdprintf_chk(fileno(stream), 1, "%s", all); }
CALL(vfprintf, written(through_v(to_vfprintf, long_text())))
CALL(__vfprintf_chk, written(through_v(to_vfprintf_chk, long_text())))
CALL(__fprintf_chk, written(__fprintf_chk(stream, 1, "%.*s", 30000, long_text())))
CALL(dprintf, written(dprintf(fileno(stream), "%s", long_text())))
CALL(__dprintf_chk, written(__dprintf_chk(fileno(stream), 1, "%s", long_text())))
CALL(vdprintf, written(through_v(to_vdprintf, long_text())))
CALL(__vdprintf_chk, written(through_v(to_vdprintf_chk, long_text())))
// The same to stdout, which is the file meanwhile.
static long to_file(Run* print) {
    fflush(stdout);
    const int before = dup(1);
    dup2(fileno(stream), 1);
    const long result = print();
    fflush(stdout);
    dup2(before, 1);
    close(before);
    return written(result);
}
int __printf_chk(int, const char*, ...);
int __vprintf_chk(int, const char*, va_list);
static int to_vprintf(va_list all) { return vprintf("%s", all); }
static int to_vprintf_chk(va_list all) { return __vprintf_chk(1, "%s", all); }
static long puts_it(void) { return puts(long_text()); }
static long io_puts_it(void) { return _IO_puts(long_text()); }
static long printf_it(void) { return printf("%s", long_text()); }
static long printf_chk_it(void) { return __printf_chk(1, "%s", long_text()); }
static long vprintf_it(void) { return through_v(to_vprintf, long_text()); }
static long vprintf_chk_it(void) { return through_v(to_vprintf_chk, long_text()); }
CALL(puts, to_file(puts_it))
CALL(_IO_puts, to_file(io_puts_it))
CALL(printf, to_file(printf_it))
CALL(__printf_chk, to_file(printf_chk_it))
CALL(vprintf, to_file(vprintf_it))
CALL(__vprintf_chk, to_file(vprintf_chk_it))

int main(int count, char** words) {
    begin_calls();
    expect(socketpair(AF_UNIX, SOCK_DGRAM, 0, grams) == 0, "sockets");
    const struct timeval second = {1, 0};
    setsockopt(grams[1], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    stream = tmpfile();
    const int result = run_calls(count, words);
    unlink(in_folder("utmp"));
    rmdir(folder);
    return result;
}
