#include "launcher/run_folder.hpp"

#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <cerrno>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace homing::launcher {
namespace {

constexpr std::string_view prefix = "homing-run-";
/// How a lock file begins: a user's own folder may have a file of this name, too.
constexpr std::string_view magic = "homing folder\n";
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::size_t random_letters = 8;
/// A folder without a lock that is this old has an owner that was killed before it could lock anything.
constexpr time_t old_seconds = 60;

/// Where Python's tempfile would put it: it tries more places where the first is of no use.
std::string temporary_base(const Environment& environment) {
    std::string base = environment.get("TMPDIR");
    if (base.empty()) {
        if (environment.has("TEMP") || environment.has("TMP")) leave_to_python();
        base = "/tmp";
    }
    if (!base.starts_with("/") || base.find("//") != std::string::npos ||
        base.find("/.") != std::string::npos)
        leave_to_python();
    while (base.size() > 1 && base.ends_with("/"))
        base.pop_back();
    if (!is_folder(base) || access(base.c_str(), W_OK | X_OK) != 0) leave_to_python();
    return base;
}

bool is_ours(std::string_view name) {
    return name.size() == prefix.size() + random_letters && name.starts_with(prefix) &&
           name.find_first_not_of(letters, prefix.size()) == std::string_view::npos;
}

/// Does a folder of ours lack an owner? Python finds out more, and removes it.
bool is_abandoned(const std::string& path) {
    struct stat there{};
    if (lstat(path.c_str(), &there) != 0 || !S_ISDIR(there.st_mode) || there.st_uid != geteuid())
        return false;
    const int lock = open((path + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) return errno == ENOENT && time(nullptr) - there.st_mtime > old_seconds;
    const bool is_free = flock(lock, LOCK_EX | LOCK_NB) == 0;
    // Not of one that its owner removes at this moment.
    struct stat mine{};
    struct stat now{};
    const bool same = fstat(lock, &mine) == 0 && lstat((path + "/lock").c_str(), &now) == 0 &&
                      mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
    char begin[magic.size()];
    const bool is_lock = pread(lock, begin, sizeof begin, 0) == static_cast<ssize_t>(sizeof begin) &&
                         std::string_view(begin, sizeof begin) == magic;
    close(lock);
    return is_free && same && is_lock;
}

bool any_abandoned(const std::string& base) {
    DIR* const folder = opendir(base.c_str());
    if (!folder) return false;
    bool found = false;
    while (const dirent* entry = readdir(folder))
        found = found || (is_ours(entry->d_name) && is_abandoned(base + "/" + entry->d_name));
    closedir(folder);
    return found;
}

std::string new_name() {
    unsigned char random[random_letters];
    if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) leave_to_python();
    std::string name(prefix);
    for (const unsigned char one : random)
        name += letters[one % letters.size()];
    return name;
}

} // namespace

RunFolder::RunFolder(const Environment& environment) {
    // The kernel ends who writes more than the limit on file sizes allows (SIGXFSZ): Python does not mind.
    rlimit files{};
    if (getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur != RLIM_INFINITY) leave_to_python();
    const std::string base = temporary_base(environment);
    if (any_abandoned(base)) leave_to_python();
    const std::string path = (base == "/" ? "" : base) + "/" + new_name();
    if (mkdir(path.c_str(), 0700) != 0) leave_to_python();
    path_ = path;
    const std::string fresh = path + "/new";
    lock_ = open(fresh.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ >= 0 && lock_ <= 2) { // standard streams that the user has closed stay closed
        const int above = fcntl(lock_, F_DUPFD_CLOEXEC, 3);
        close(lock_);
        lock_ = above;
    }
    if (lock_ < 0 || flock(lock_, LOCK_EX) != 0 ||
        pwrite(lock_, magic.data(), magic.size(), 0) != static_cast<ssize_t>(magic.size()) ||
        rename(fresh.c_str(), (path + "/lock").c_str()) != 0) {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
        if (lock_ >= 0) close(lock_);
        leave_to_python();
    }
}

RunFolder::~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    close(lock_);
}

void RunFolder::note(const std::string& text) const {
    // Without it, the next launcher removes the folder and says nothing.
    if (pwrite(lock_, text.data(), text.size(), magic.size()) < 0) return;
}

bool RunFolder::has_records() const {
    DIR* const folder = opendir(path_.c_str());
    if (!folder) return true;
    bool found = false;
    while (const dirent* entry = readdir(folder)) {
        const std::string_view name = entry->d_name;
        found = found || (name != "." && name != ".." && name != "lock" && name != "libhoming.so");
    }
    closedir(folder);
    return found;
}

} // namespace homing::launcher
