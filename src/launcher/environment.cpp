#include "launcher/environment.hpp"

#include "launcher/files.hpp"
#include "launcher/unusual.hpp"

#include <algorithm>
#include <unistd.h>

namespace homing::launcher {
namespace {

/// Names of libraries, as gcc and clang have them.
constexpr std::string_view sanitizers[] = {"libasan.",  "libtsan.",   "liblsan.",
                                           "libubsan.", "libhwasan.", "libclang_rt."};

std::string_view name_of(std::string_view text) { return text.substr(0, text.find('=')); }

bool is_sanitizer(const std::string& library) {
    const std::string name = file_name(library);
    return std::any_of(std::begin(sanitizers), std::end(sanitizers),
                       [&](std::string_view one) { return name.starts_with(one); });
}

} // namespace

Environment::Environment(char** texts) {
    for (; *texts; ++texts) {
        const std::string_view text = *texts;
        if (text.find('=') == std::string_view::npos || has(name_of(text))) continue;
        texts_.emplace_back(text);
    }
}

std::vector<std::string>::const_iterator Environment::find(std::string_view name) const {
    return std::find_if(texts_.begin(), texts_.end(), [&](const std::string& text) {
        return text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name);
    });
}

bool Environment::has(std::string_view name) const { return find(name) != texts_.end(); }

std::string Environment::get(std::string_view name) const {
    const auto found = find(name);
    return found == texts_.end() ? std::string() : found->substr(name.size() + 1);
}

void Environment::set(std::string_view name, std::string_view value) {
    std::string text(name);
    text.append("=").append(value);
    const auto found = find(name);
    if (found == texts_.end())
        texts_.push_back(std::move(text));
    else
        texts_[static_cast<std::size_t>(found - texts_.begin())] = std::move(text);
}

void Environment::remove(std::string_view name) {
    if (const auto found = find(name); found != texts_.end()) texts_.erase(found);
}

std::vector<char*> Environment::pointers() {
    std::vector<char*> found;
    found.reserve(texts_.size() + 1);
    for (std::string& text : texts_)
        found.push_back(text.data());
    found.push_back(nullptr);
    return found;
}

void preload(Environment& environment, const std::string& library, const std::string& folder) {
    std::string path = library;
    if (path.find_first_of(" :\t\n") != std::string::npos) {
        path = folder + "/libhoming.so";
        if (symlink(library.c_str(), path.c_str()) != 0) leave_to_python();
    }
    std::vector<std::string> first;
    std::vector<std::string> behind;
    const std::string others = environment.get("LD_PRELOAD");
    for (std::size_t at = 0; at < others.size();) {
        // What str.split() of Python takes for space: the loader itself knows spaces and colons only.
        const auto end = std::min(others.find_first_of(": \t\n\r\f\v", at), others.size());
        if (end > at) {
            const std::string other = others.substr(at, end - at);
            (is_sanitizer(other) ? first : behind).push_back(other);
        }
        at = end + 1;
    }
    std::string value;
    const auto add = [&](const std::string& one) { value += (value.empty() ? "" : ":") + one; };
    std::for_each(first.begin(), first.end(), add);
    add(path);
    // A sanitizer that is named twice stays first.
    std::for_each(behind.begin(), behind.end(), add);
    environment.set("LD_PRELOAD", value);
    // A sanitized program that a script starts would refuse to run behind our library.
    const std::string options = environment.get("ASAN_OPTIONS");
    constexpr std::string_view order = "verify_asan_link_order";
    if (options.find(order) == std::string::npos)
        environment.set("ASAN_OPTIONS", (options.empty() ? "" : options + ":") + std::string(order) + "=0");
}

} // namespace homing::launcher
