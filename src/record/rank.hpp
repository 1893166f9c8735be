// Which task of a parallel job this process is.
#pragma once

namespace homing::record {

/// One of several tasks.
struct Task {
    int rank = -1; ///< its number; -1: it is the only one, or none of a job
    int size = -1; ///< how many there are; -1: not stated
};

/// This process among the tasks of its job, by what the job's launcher says in the environment
/// (homing/launchers.toml has the rule, homing/launchers.py is the same in Python). No allocation.
Task process_task() noexcept;
inline int process_rank() noexcept { return process_task().rank; }

} // namespace homing::record
