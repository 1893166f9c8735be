#include "launcher/machine.hpp"

#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace homing::launcher {
namespace {

constexpr std::string_view first_line = "homing costs of this boot, for the launcher: 1";
constexpr const char* boot_file = "/proc/sys/kernel/random/boot_id";

std::string nodes_text(const std::string& system, const char* name) {
    std::string text = read_text(system + "/devices/system/node/" + name);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
        text.pop_back();
    return text;
}

bool others_write(const struct stat& there) { return (there.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// Is nobody but the user and the system able to change what lies in this folder? As homing/paths.py, but
/// for links and groups of one user, which are left to Python.
bool is_private(const std::string& folder) {
    struct stat root{};
    if (lstat("/", &root) != 0) return false;
    struct stat there = root;
    for (std::size_t at = 0; at < folder.size();) {
        const auto end = std::min(folder.find('/', at + 1), folder.size());
        const bool shared = others_write(there);
        if (shared && (there.st_mode & S_ISVTX) == 0) return false;
        if (lstat(folder.substr(0, end).c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) return false;
        const bool of_system = there.st_uid == 0 || there.st_uid == root.st_uid;
        if (there.st_uid != geteuid() && !of_system) return false;
        at = end;
    }
    return there.st_uid == geteuid() && (there.st_mode & 077) == 0;
}

std::string cache_folder(const Environment& environment) {
    std::string folder = environment.get("HOMING_CACHE");
    if (folder.empty()) {
        const std::string base = environment.get("XDG_CACHE_HOME");
        const std::string home = environment.get("HOME");
        folder = base.starts_with("/") ? base + "/homing" : home + "/.cache/homing";
    }
    const bool plain = folder.starts_with("/") && !folder.ends_with("/") &&
                       folder.find("//") == std::string::npos && folder.find("/./") == std::string::npos &&
                       folder.find("/../") == std::string::npos;
    if (!plain || !is_private(folder)) leave_to_python();
    return folder;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

bool is_own_file(const std::string& path, struct stat& there) {
    return lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) && there.st_uid == geteuid() &&
           !others_write(there);
}

} // namespace

NodeCount count_nodes(const std::string& system) {
    return {parse_list(nodes_text(system, "has_cpu")).size(),
            parse_list(nodes_text(system, "online")).size()};
}

std::string noted_costs(const Environment& environment, const std::string& system) {
    const std::string note = cache_folder(environment) + "/launcher-costs";
    struct stat there{};
    if (!is_own_file(note, there)) leave_to_python();
    const std::vector<std::string> lines = lines_of(read_text(note));
    const std::string nodes = nodes_text(system, "online") + " " + nodes_text(system, "has_cpu") + " " +
                              nodes_text(system, "has_memory");
    const std::vector<std::string> boot = lines_of(read_text(boot_file));
    if (lines.size() != 5 || boot.empty() || lines[0] != first_line || lines[1] != boot[0] ||
        lines[2] != nodes)
        leave_to_python();
    const std::string& path = lines[4];
    if (folder_of(path) != folder_of(note) || !is_own_file(path, there)) leave_to_python();
    const std::string state = std::to_string(there.st_size) + " " + std::to_string(there.st_ino) + " " +
                              std::to_string(there.st_mtim.tv_sec) + " " +
                              std::to_string(there.st_mtim.tv_nsec);
    if (lines[3] != state) leave_to_python();
    return path;
}

} // namespace homing::launcher
