#include "launcher/files.hpp"

#include "launcher/unusual.hpp"

#include <charconv>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace homing::launcher {
namespace {

/// Bytes of the UTF-8 sequence at the begin of `text`, 0 where there is none.
std::size_t sequence(std::string_view text) {
    const auto byte = [&](std::size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4) return 0;
    for (std::size_t at = 1; at < length; ++at)
        if ((byte(at) & 0xc0) != 0x80) return 0;
    // Forms that are too long, surrogates, and what is beyond the last character.
    const unsigned second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return length;
}

bool has_mode(const std::string& path, mode_t kind) {
    struct stat there{};
    return stat(path.c_str(), &there) == 0 && (there.st_mode & S_IFMT) == kind;
}

} // namespace

std::string absolute(const std::string& path) {
    if (path.starts_with("/")) return path;
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder) || folder[0] != '/') leave_to_python();
    const std::string here = folder;
    return here.ends_with("/") ? here + path : here + "/" + path;
}

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool is_file(const std::string& path) { return has_mode(path, S_IFREG); }
bool is_folder(const std::string& path) { return has_mode(path, S_IFDIR); }

std::string read_text(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return "";
    char buffer[1 << 14];
    std::string text;
    for (ssize_t got; (got = read(file, buffer, sizeof buffer)) > 0 && text.size() < 1u << 20;)
        text.append(buffer, static_cast<std::size_t>(got));
    close(file);
    return text;
}

std::vector<int> parse_list(std::string_view text) {
    std::vector<int> numbers;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        int first = 0;
        const auto [rest, error] = std::from_chars(at, end, first);
        if (error != std::errc()) break;
        int last = first;
        at = rest;
        if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
        for (int one = first; one <= last && last < 100000; ++one)
            numbers.push_back(one);
        if (at == end || *at != ',') break;
        ++at;
    }
    return numbers;
}

std::string json_text(std::string_view text) {
    std::string quoted = "\"";
    while (!text.empty()) {
        const std::size_t length = sequence(text);
        const unsigned char letter = static_cast<unsigned char>(text[0]);
        char escape[8];
        if (length == 0) { // os.fsdecode() makes surrogates of such bytes
            std::snprintf(escape, sizeof escape, "\\udc%02x", letter);
            quoted += escape;
        } else if (length == 1 && (letter < 0x20 || letter == '"' || letter == '\\')) {
            std::snprintf(escape, sizeof escape, "\\u%04x", letter);
            quoted += escape;
        } else {
            quoted += text.substr(0, length);
        }
        text.remove_prefix(length ? length : 1);
    }
    return quoted + '"';
}

} // namespace homing::launcher
