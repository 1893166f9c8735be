// Which task of a parallel job this process is.
#pragma once

namespace homing::record {

/// The number of this process among the tasks of its job, by what the job's launcher says in the environment
/// (homing/launchers.toml has the rule, homing/launchers.py is the same in Python); -1: it is the only one,
/// or none of a job. No allocation.
int process_rank() noexcept;

} // namespace homing::record
