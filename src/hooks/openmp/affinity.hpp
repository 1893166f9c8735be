#pragma once

namespace homing::hooks {

/// What became of the affinity clauses of this process, for the record.
void record_affinity() noexcept;

} // namespace homing::hooks
