// Which task of a parallel job this process is: the rule of homing/launchers.toml.
#include "record/rank.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace homing::record {
namespace {

/// Names of variables, terminated by nullptr.
using Names = const char* [4];

struct Launcher {
    Names rank;
    Names size;
    Names batch;
    Names step;
};

constexpr Launcher launchers[] = {
#include "launchers_table.inc"
};

/// The number that the first of the variables with one holds (ASCII digits, up to 2^31 - 1), or -1.
int number_of(const Names& names) noexcept {
    for (const char* const* name = names; *name; ++name) {
        const char* text = std::getenv(*name);
        if (!text || *text < '0' || *text > '9') continue;
        int number = 0;
        const char* const end = text + std::strlen(text);
        const auto [rest, error] = std::from_chars(text, end, number);
        if (error == std::errc() && rest == end) return number;
    }
    return -1;
}

bool is_set(const Names& names) noexcept {
    for (const char* const* name = names; *name; ++name)
        if (const char* text = std::getenv(*name); text && *text) return true;
    return false;
}

int rank_by(const Launcher& launcher) noexcept {
    const bool batch_script = is_set(launcher.batch) && !is_set(launcher.step);
    return batch_script ? -1 : number_of(launcher.rank);
}

} // namespace

Task process_task() noexcept {
    int rank = -1;
    int size = -1;
    for (const Launcher& launcher : launchers) {
        const int stated = rank_by(launcher);
        if (rank < 0) rank = stated;
        if (stated >= 0 && stated == rank) size = number_of(launcher.size);
        if (rank >= 0 && size > 0) break;
    }
    if (rank < 0 || size == 1) return {};
    return {rank, size > 0 ? size : -1};
}

} // namespace homing::record
