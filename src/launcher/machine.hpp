// What the launcher needs to know of the machine before a run.
#pragma once

#include "launcher/environment.hpp"

#include <string>

namespace homing::launcher {

/// NUMA nodes, as homing/machine_facts.py counts them below the folder `system` ("/sys" of the machine).
struct NodeCount {
    std::size_t with_cpus = 0;
    std::size_t online = 0;
};
NodeCount count_nodes(const std::string& system);

/// The file with the costs of this machine, as Python noted it in the user's cache (homing/costs.py:
/// note_for_launcher) after it had checked it. Unusual where there is no note of this boot of this machine,
/// or where anybody but the user could have written it.
std::string noted_costs(const Environment& environment, const std::string& system);

} // namespace homing::launcher
