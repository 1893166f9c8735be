#pragma once

namespace homing::doors {

/// What became of the affinity clauses of this process, for the record.
void record_affinity() noexcept;

} // namespace homing::doors
