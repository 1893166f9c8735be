// Homing's Python: where it is, and what it is started for.
#pragma once

#include <string>
#include <vector>

namespace homing::launcher {

class Python {
  public:
    /// Found from where this launcher lies: a source tree, a prefix (make install), a wheel. `stated`: the
    /// interpreter, where it is known better (tools/commands.py); empty: not.
    explicit Python(const std::string& stated);

    /// libhoming.so of this installation; empty where it is not found.
    std::string library() const;

    /// Become Python with the whole command line. Returns where it could not be started.
    void run_command(const std::vector<std::string>& words) const;
    /// Become Python, to finish a run whose state (JSON) is in this descriptor.
    void finish_run(int state) const;

  private:
    /// site: with what `site` finds, from the start on.
    void become(const std::string& code, const std::vector<std::string>& words, bool site) const;

    std::string interpreter_;
    std::string package_; ///< the folder `homing`; empty: Python knows where it is
};

} // namespace homing::launcher
