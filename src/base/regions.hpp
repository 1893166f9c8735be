// Where the program is: the begin and end of top-level parallel regions and the barriers within, as the hooks
// (the runtimes' entry points, OMPT, the C API) report them, handed to one listener. Nested regions, and
// regions that other threads open at the same time, are the program's own business and pass by.
#pragma once

#include "base/pages.hpp"

namespace homing::phases {

/// Called by the thread that drives the region: one at a time.
class Listener {
  public:
    virtual ~Listener() = default;
    /// Before the team starts. `function`: address of the outlined function (its identity).
    virtual void region_begin(Address function) noexcept = 0;
    /// After the team has ended.
    virtual void region_end() noexcept = 0;
    /// The driving thread arrives at a barrier within its region; `site` identifies the barrier. Returns
    /// whether to tell when it has passed it.
    virtual bool barrier(Address site) noexcept = 0;
    /// It has passed the barrier, at which the whole team has arrived.
    virtual void barrier_passed() noexcept {}
};

/// How to start when the first region shows that this process uses OpenMP: returns the listener, or null to
/// step aside for good.
using Starter = Listener* (*)() noexcept;
void set_starter(Starter starter) noexcept;

/// The program asks for something that needs the listener, which may be before its first region. False: there
/// is none.
bool start() noexcept;

/// A parallel region begins on this thread. True: end() must be called when it has ended.
bool begin(Address function) noexcept;
void end() noexcept;
/// Before a barrier. True: barrier_passed() must be called behind it.
bool barrier(Address site) noexcept;
void barrier_passed() noexcept;

/// Nobody tells when a region ends (a foreign OMPT tool is in charge, which must see the program's own
/// calls): the listener is told of an end right before the next begin.
bool begin_without_end(Address function) noexcept;
/// False once that was so: what looks like a region may be serial code behind it.
bool ends_are_known() noexcept;

/// homing does nothing (more) in this process: hooks pass straight through.
bool aside() noexcept;
void step_aside() noexcept;

/// A top-level region is open now (any thread).
bool in_region() noexcept;
/// The caller is within the open top-level region, and is the thread that drives it.
bool drives_region() noexcept;

} // namespace homing::phases
