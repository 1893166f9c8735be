// The variables of a program that is started.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace homing::launcher {

class Environment {
  public:
    /// Of `NAME=VALUE` texts; of several with one name the first counts, as for getenv.
    explicit Environment(char** texts);

    /// The value; empty where it is empty or not set.
    std::string get(std::string_view name) const;
    bool has(std::string_view name) const;
    void set(std::string_view name, std::string_view value);
    void remove(std::string_view name);

    /// As execve takes it; valid until the next change.
    std::vector<char*> pointers();

  private:
    std::vector<std::string>::const_iterator find(std::string_view name) const;

    std::vector<std::string> texts_;
};

/// Put the library before what the user preloads, but for sanitizers, which must come first
/// (homing/environment.py: preload). `folder`: for a link where the library's path cannot be expressed.
void preload(Environment& environment, const std::string& library, const std::string& folder);

} // namespace homing::launcher
