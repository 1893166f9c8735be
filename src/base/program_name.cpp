#include "base/program_name.hpp"
#include "base/raw_calls.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace homing {
namespace {

constexpr const char* executable = "/proc/self/exe";

bool same_file(const char* path) noexcept {
    struct stat wanted{};
    struct stat own{};
    return raw::status(path, wanted) == 0 && raw::status(executable, own) == 0 &&
           wanted.st_dev == own.st_dev && wanted.st_ino == own.st_ino;
}

} // namespace

bool program_is(const char* wanted) noexcept {
    if (std::strchr(wanted, '/')) return same_file(wanted);
    if (std::strcmp(wanted, ::program_invocation_short_name) == 0) return true;
    char path[4096];
    const auto length =
        raw::call(SYS_readlinkat, AT_FDCWD, executable, static_cast<char*>(path), sizeof path);
    if (length <= 0) return false;
    std::string_view name(path, static_cast<std::size_t>(length));
    name.remove_prefix(name.rfind('/') + 1);
    return name == wanted;
}

} // namespace homing
