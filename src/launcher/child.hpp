// Run a command as a child, as if the launcher were not there: homing/launch.py says how, and is the same.
#pragma once

#include "launcher/environment.hpp"

#include <csignal>
#include <string>
#include <sys/types.h>
#include <vector>

namespace homing::launcher {

/// While it lives, the signals that are a command's are held back; those that wait when the child has ended
/// were the child's.
class HeldSignals {
  public:
    HeldSignals();
    ~HeldSignals(); ///< as they were before, unless they were forgotten
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    /// A signal came that would have ended this process; 0: none.
    int ending() const;
    /// Those that wait are lost, and so is what comes from now on: this process only ends.
    void forget();
    const sigset_t& held() const { return held_; }
    const sigset_t& before() const { return before_; }
    const struct sigaction& child_action() const { return child_action_; }

  private:
    sigset_t held_{};
    sigset_t before_{};
    struct sigaction child_action_{};
    bool forgotten_ = false;
};

/// Start `path`; the process id. Unusual where the system refuses.
pid_t start(const std::string& path, const std::vector<std::string>& command, Environment& environment,
            const HeldSignals& signals);

/// Wait for it, pass signals on, stop and go on with it. Its wait status.
int wait_for(pid_t child, const HeldSignals& signals);

/// End this process as the child ended.
[[noreturn]] void end_like(int status);

} // namespace homing::launcher
