// Calls that move data: files, pipes, sockets, queues, streams of the C library, other processes.
#include "hooks/syscalls/calls.hpp"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mqueue.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>

// Compiled with _FORTIFY_SOURCE, programs call these instead.
extern "C" {
ssize_t __read_chk(int, void*, std::size_t, std::size_t);
ssize_t __pread_chk(int, void*, std::size_t, off_t, std::size_t);
ssize_t __pread64_chk(int, void*, std::size_t, off64_t, std::size_t);
ssize_t __recv_chk(int, void*, std::size_t, std::size_t, int);
ssize_t __recvfrom_chk(int, void*, std::size_t, std::size_t, int, sockaddr*, socklen_t*);
std::size_t __fread_chk(void*, std::size_t, std::size_t, std::size_t, FILE*);
std::size_t __fread_unlocked_chk(void*, std::size_t, std::size_t, std::size_t, FILE*);
int __vprintf_chk(int, const char*, va_list);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
int __printf_chk(int, const char*, ...);
int __fprintf_chk(FILE*, int, const char*, ...);
int __dprintf_chk(int, int, const char*, ...);
// Other names of the same.
ssize_t __read(int, void*, std::size_t);
ssize_t __write(int, const void*, std::size_t);
ssize_t __pread64(int, void*, std::size_t, off64_t);
ssize_t __pwrite64(int, const void*, std::size_t, off64_t);
ssize_t __send(int, const void*, std::size_t, int);
std::size_t _IO_fread(void*, std::size_t, std::size_t, FILE*);
std::size_t _IO_fwrite(const void*, std::size_t, std::size_t, FILE*);
std::size_t _IO_sgetn(FILE*, void*, std::size_t);
int _IO_fputs(const char*, FILE*);
int _IO_puts(const char*);
}

HOMING_CALL3(read, data(b, c))
HOMING_CALL3(write, data(b, c))
HOMING_CALL4(pread, data(b, c))
HOMING_CALL4(pwrite, data(b, c))
HOMING_CALL4(pread64, data(b, c))
HOMING_CALL4(pwrite64, data(b, c))
HOMING_CALL4(__read_chk, data(b, c))
HOMING_CALL5(__pread_chk, data(b, c))
HOMING_CALL5(__pread64_chk, data(b, c))
HOMING_CALL3(__read, data(b, c))
HOMING_CALL3(__write, data(b, c))
HOMING_CALL4(__pread64, data(b, c))
HOMING_CALL4(__pwrite64, data(b, c))
HOMING_CALL3(readv, pieces(b, c))
HOMING_CALL3(writev, pieces(b, c))
HOMING_CALL4(preadv, pieces(b, c))
HOMING_CALL4(pwritev, pieces(b, c))
HOMING_CALL4(preadv64, pieces(b, c))
HOMING_CALL4(pwritev64, pieces(b, c))
HOMING_CALL5(preadv2, pieces(b, c))
HOMING_CALL5(pwritev2, pieces(b, c))
HOMING_CALL5(preadv64v2, pieces(b, c))
HOMING_CALL5(pwritev64v2, pieces(b, c))

HOMING_CALL4(recv, data(b, c))
HOMING_CALL4(send, data(b, c))
HOMING_CALL4(__send, data(b, c))
HOMING_CALL5(__recv_chk, data(b, c))
HOMING_CALL6(recvfrom, data(b, c), address(e, f))
HOMING_CALL7(__recvfrom_chk, data(b, c), address(f, g))
HOMING_CALL6(sendto, data(b, c), bytes(e, f))
HOMING_CALL3(recvmsg, message(b))
HOMING_CALL3(sendmsg, message(b))
HOMING_CALL5(recvmmsg, messages(b, c), object(e))
HOMING_CALL4(sendmmsg, messages(b, c))

HOMING_CALL4(sendfile, object(c))
HOMING_CALL4(sendfile64, object(c))
HOMING_CALL6(splice, object(b), object(d))
HOMING_CALL4(vmsplice, pieces(b, static_cast<long>(c)))
HOMING_CALL6(copy_file_range, object(b), object(d))
HOMING_CALL2(eventfd_read, object(b))

HOMING_CALL4(msgsnd, bytes(b, c + sizeof(long)))
HOMING_CALL5(msgrcv, bytes(b, c + sizeof(long)))
HOMING_CALL4(mq_send, bytes(b, c))
HOMING_CALL5(mq_timedsend, bytes(b, c), object(e))
HOMING_CALL4(mq_receive, bytes(b, c), object(d))
HOMING_CALL5(mq_timedreceive, bytes(b, c), object(d), object(e))

HOMING_CALL3(getrandom, data(a, b))
HOMING_CALL2(getentropy, data(a, b))
#if __GLIBC_PREREQ(2, 36)
HOMING_CALL2(arc4random_buf, data(a, b))
#endif

// The other process reads or writes our pages from outside; only our own side can be told of.
namespace {
homing::hooks::pieces own_pieces(pid_t process, const iovec* list, unsigned long count) noexcept {
    return {list, process == ::getpid() ? static_cast<long>(count) : 0};
}
} // namespace
HOMING_CALL6(process_vm_readv, pieces(b, static_cast<long>(c)), objects(d, e), own_pieces(a, d, e))
HOMING_CALL6(process_vm_writev, pieces(b, static_cast<long>(c)), objects(d, e), own_pieces(a, d, e))

// mlock faults every page in: it fails (ENOMEM) where one is taken away.
HOMING_CALL2(mlock, bytes(a, b))
HOMING_CALL3(mlock2, bytes(a, b))

HOMING_CALL1(pututline, object(a))
HOMING_CALL1(pututxline, object(a))
HOMING_CALL2(updwtmp, text(a), object(b))
HOMING_CALL2(updwtmpx, text(a), object(b))

// The C library's streams read and write large pieces directly, inside it, where read is not seen.
HOMING_CALL4(fread, data(a, b* c))
HOMING_CALL4(fwrite, data(a, b* c))
HOMING_CALL4(fread_unlocked, data(a, b* c))
HOMING_CALL4(fwrite_unlocked, data(a, b* c))
HOMING_CALL5(__fread_chk, data(a, c* d))
HOMING_CALL5(__fread_unlocked_chk, data(a, c* d))
HOMING_CALL4(_IO_fread, data(a, b* c))
HOMING_CALL4(_IO_fwrite, data(a, b* c))
HOMING_CALL3(_IO_sgetn, data(b, c))
HOMING_CALL2(fputs, string(a))
HOMING_CALL2(fputs_unlocked, string(a))
HOMING_CALL2(_IO_fputs, string(a))
HOMING_CALL1(puts, string(a))
HOMING_CALL1(_IO_puts, string(a))

// What printf writes is not known before, but it looks for the end of every string before it writes it: only
// a page that is armed after that is in its way.
namespace {
template <class Print> [[gnu::always_inline]] inline int printing(Print&& print) {
    homing::InFlight call;
    call.add(homing::all_memory);
    homing::Windows::begin_touching();
    const int result = print();
    call.end();
    return result;
}
} // namespace

// Those with a list of arguments, and what the others call: not the exported name, which is found in a table
// that need not be relocated yet, and may be another library's.
#define HOMING_VPRINT(name, parameters, ...)                                                                 \
    static int through_##name parameters {                                                                   \
        static constinit homing::hooks::Real<homing::hooks::Signature<&::name>::Function> real{#name};       \
        if (!real.is_ready()) return homing::hooks::early(real, __VA_ARGS__);                                \
        return printing([&] { return real(__VA_ARGS__); });                                                  \
    }                                                                                                        \
    HOMING_HOOK(name, parameters) { return through_##name(__VA_ARGS__); }
#define HOMING_PRINT(name, parameters, last, vname, ...)                                                     \
    extern "C" HOMING_EXPORT int door_##name parameters __asm__(#name);                                      \
    int door_##name parameters {                                                                             \
        va_list list;                                                                                        \
        va_start(list, last);                                                                                \
        const int result = through_##vname(__VA_ARGS__, list);                                               \
        va_end(list);                                                                                        \
        return result;                                                                                       \
    }

HOMING_VPRINT(vprintf, (const char* format, va_list list), format, list)
HOMING_VPRINT(vfprintf, (FILE * file, const char* format, va_list list), file, format, list)
HOMING_VPRINT(vdprintf, (int fd, const char* format, va_list list), fd, format, list)
HOMING_VPRINT(__vprintf_chk, (int flag, const char* format, va_list list), flag, format, list)
HOMING_VPRINT(__vfprintf_chk, (FILE * file, int flag, const char* format, va_list list), file, flag, format,
              list)
HOMING_VPRINT(__vdprintf_chk, (int fd, int flag, const char* format, va_list list), fd, flag, format, list)
HOMING_PRINT(printf, (const char* format, ...), format, vprintf, format)
HOMING_PRINT(fprintf, (FILE * file, const char* format, ...), format, vfprintf, file, format)
HOMING_PRINT(dprintf, (int fd, const char* format, ...), format, vdprintf, fd, format)
HOMING_PRINT(__printf_chk, (int flag, const char* format, ...), format, __vprintf_chk, flag, format)
HOMING_PRINT(__fprintf_chk, (FILE * file, int flag, const char* format, ...), format, __vfprintf_chk, file,
             flag, format)
HOMING_PRINT(__dprintf_chk, (int fd, int flag, const char* format, ...), format, __vdprintf_chk, fd, flag,
             format)
