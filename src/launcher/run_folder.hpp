// The temporary folder of a run: homing/temporary.py and homing/killed.py make the same, and say what became
// of folders whose launchers were killed.
#pragma once

#include "launcher/environment.hpp"

#include <string>

namespace homing::launcher {

class RunFolder {
  public:
    /// A new folder with its lock. Unusual where a killed launcher left one, and where none can be made.
    explicit RunFolder(const Environment& environment);
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    /// Leave a note (JSON) for the next launcher, should this one be killed.
    void note(const std::string& text) const;
    /// Does it hold anything but its lock and the link to the library?
    bool has_records() const;

    const std::string& path() const { return path_; }
    int lock() const { return lock_; }

  private:
    std::string path_;
    int lock_ = -1;
};

} // namespace homing::launcher
