// The C interface from C++.
#include <homing/homing.h>

#include <cstdio>
#include <vector>

int main() {
    std::vector<double> memory(1 << 17, 1.0);
    homing_statistics_t statistics{};
    statistics.struct_bytes = sizeof statistics;
    const int placed = homing_place_on_node(memory.data(), memory.size() * sizeof(double), 0);
    const bool well =
        (placed >= HOMING_OK || placed == HOMING_ASIDE) && homing_statistics(&statistics) == HOMING_OK;
    std::puts(well ? "consumer: well" : "consumer: homing did not answer as homing.h says");
    return well ? 0 : 1;
}
