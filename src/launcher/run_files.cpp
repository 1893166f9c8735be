#include "launcher/run_files.hpp"

#include "launcher/files.hpp"
#include "launcher/unusual.hpp"
#include "record/rank.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

namespace homing::launcher {
namespace {

/// What a record takes before its first row is written (src/record/record.cpp: piece_bytes).
constexpr unsigned long long record_bytes = 1u << 20;
constexpr std::string_view magic = "homing-record ";

bool is_summary_file(const std::string& summary) {
    return summary != "stderr" && summary != "stdout" && summary != "none";
}

/// A folder that files can be made in, and no file of this name that is not a regular one.
void check_place(const std::string& path) {
    const std::string folder = folder_of(path);
    if (!is_folder(folder) || access(folder.c_str(), W_OK | X_OK) != 0) leave_to_python();
    struct stat there{};
    if (lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) leave_to_python();
}

void check_output(const std::string& name) {
    if (name.find('%') != std::string::npos) leave_to_python();
    const std::string path = absolute(name);
    check_place(path);
    // What may be replaced, Python judges.
    if (is_file(path)) leave_to_python();
}

/// No two of them are one file. Of files that are there Python judges.
void check_distinct(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) {
        char folder[PATH_MAX];
        if (!realpath(folder_of(absolute(name)).c_str(), folder)) leave_to_python();
        paths.push_back(std::string(folder) + "/" + file_name(name));
    }
    std::sort(paths.begin(), paths.end());
    if (std::adjacent_find(paths.begin(), paths.end()) != paths.end()) leave_to_python();
}

void check_room(const std::string& folder) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) leave_to_python();
    struct statvfs disk{};
    if (statvfs(folder.c_str(), &disk) != 0) leave_to_python();
    if (disk.f_blocks != 0 && disk.f_bavail * disk.f_frsize < record_bytes) leave_to_python();
}

void check_record(const std::string& name) {
    // %p in the file's name is known here; ranks, percent signs and folders named so are not.
    const auto sign = name.find('%');
    const bool plain = sign == std::string::npos ||
                       (name.compare(sign, 2, "%p") == 0 && name.find('%', sign + 1) == std::string::npos &&
                        name.find('/', sign) == std::string::npos);
    const std::string path = absolute(name);
    if (!plain || folder_of(path).find('%') != std::string::npos) leave_to_python();
    check_place(path);
    check_room(folder_of(path));
    if (sign != std::string::npos) return;
    // A record may take an older one's place, and nothing else's.
    if (const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); file >= 0) {
        char begin[magic.size()];
        const ssize_t got = read(file, begin, sizeof begin);
        close(file);
        const bool is_record =
            got == static_cast<ssize_t>(sizeof begin) && std::string_view(begin, sizeof begin) == magic;
        if (got != 0 && !is_record) leave_to_python();
    } else if (is_file(path)) {
        leave_to_python();
    }
}

std::string doubled(const std::string& text) {
    std::string found;
    for (const char letter : text)
        found += letter == '%' ? std::string("%%") : std::string(1, letter);
    return found;
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

} // namespace

void check_files(const Request& request) {
    const bool summary = is_summary_file(request.summary);
    const bool named = !request.record.empty() || !request.json.empty() || summary;
    if (named && record::process_rank() >= 0) leave_to_python();
    std::vector<std::string> names;
    if (!request.json.empty()) {
        check_output(request.json);
        names.push_back(request.json);
    }
    if (summary) {
        check_output(request.summary);
        names.push_back(request.summary);
    }
    if (!request.record.empty()) {
        check_record(request.record);
        if (has_records(record_pattern(request, ""))) leave_to_python();
        names.push_back(request.record);
    }
    check_distinct(names);
}

std::string record_pattern(const Request& request, const std::string& folder) {
    if (request.record.empty()) return doubled(folder) + "/%p.homing";
    const std::string path = absolute(request.record);
    return path.find('%') == std::string::npos ? path + ".%p" : path;
}

bool has_records(const std::string& pattern) {
    const std::string name = file_name(pattern);
    const auto sign = name.find("%p");
    const std::string_view before = std::string_view(name).substr(0, sign);
    const std::string_view behind = std::string_view(name).substr(sign + 2);
    DIR* const folder = opendir(folder_of(pattern).c_str());
    if (!folder) return true; // Python says what it makes of that
    bool found = false;
    while (const dirent* entry = readdir(folder)) {
        const std::string_view one = entry->d_name;
        found = found || (one.size() > before.size() + behind.size() && one.starts_with(before) &&
                          one.ends_with(behind) &&
                          is_number(one.substr(before.size(), one.size() - before.size() - behind.size())));
    }
    closedir(folder);
    return found;
}

} // namespace homing::launcher
