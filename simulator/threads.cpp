#include "threads.hpp"

#include "base/inside.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <utility>

namespace homing::simulator {
namespace {

/// The OpenMP runtime's own account, where there is one.
struct OpenMp {
    int (*level)() = nullptr;
    int (*number)(int) = nullptr;
    int (*size)(int) = nullptr;
    Runtime kind = Runtime::gcc;
};

/// Whose functions these are; libiomp5 is LLVM's under another name.
Runtime kind_of(const void* function) noexcept {
    Dl_info found{};
    if (!::dladdr(function, &found) || !found.dli_fname) return Runtime::gcc;
    const char* slash = std::strrchr(found.dli_fname, '/');
    return std::strncmp(slash ? slash + 1 : found.dli_fname, "libgomp", 7) == 0 ? Runtime::gcc
                                                                                : Runtime::llvm;
}

const OpenMp& runtime() {
    static OpenMp found;
    if (!found.level) { // again while there is none: it may be loaded later
        found.number = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_get_ancestor_thread_num"));
        found.size = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_get_team_size"));
        found.level = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_level"));
        if (found.level) found.kind = kind_of(reinterpret_cast<const void*>(found.level));
    }
    return found;
}

struct Watched {
    bool* alive;
    Thread** self;
    bool ends; ///< the destructors of its keys have begun
};
constinit thread_local Watched watched{nullptr, nullptr, false};
pthread_key_t key;

/// After those of the program's keys, which may make accesses: they run once, in any order, before a
/// destructor is called that has set its key again.
void thread_ends(void*) {
    if (!std::exchange(watched.ends, true) && ::pthread_setspecific(key, &watched) == 0) return;
    *watched.self = nullptr;
    __atomic_store_n(watched.alive, false, __ATOMIC_RELEASE);
}

/// The CPUs one after the other, round and round.
int cpu_in_turn(const Described& machine, int ordinal) noexcept {
    int left = ordinal % machine.cpu_count();
    int cpu = 0;
    while (machine.node_of_cpu(cpu) < 0 || left-- > 0)
        ++cpu;
    return cpu;
}

} // namespace

int cpu_of_caller(const Described& machine, bool main, int ordinal, std::uint64_t& order) {
    const OpenMp& omp = runtime();
    const int level = omp.level && omp.number && omp.size ? omp.level() : 0;
    const Placement& placement = machine.placements[static_cast<std::size_t>(omp.kind)];
    const std::size_t count = placement.places.size();
    if (main) order = 0;
    if (level == 0 && !main) return cpu_in_turn(machine, ordinal);
    const Inside inside; // what is allocated here is not the program's
    Position at{0, count, 0};
    std::size_t turn = 0; // threads of one place take its CPUs in turn
    for (int outer = 1; outer <= level; ++outer) {
        const auto number = static_cast<std::size_t>(std::max(omp.number(outer), 0));
        const auto team = static_cast<std::size_t>(std::max(omp.size(outer), 1));
        order = (outer == 1 ? 0 : order << 12) + number;
        if (team <= 1 || number >= team) continue;
        const Binding binding =
            placement.bindings[std::min(static_cast<std::size_t>(outer), placement.bindings.size()) - 1];
        const std::vector<Position> positions = positions_of(omp.kind, binding, at, count, team);
        at = positions[number];
        turn = static_cast<std::size_t>(
            std::count_if(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(number),
                          [&](const Position& one) { return one.place == at.place; }));
    }
    const std::vector<int>& place = placement.places[std::min(at.place, count - 1)];
    return place[turn % place.size()];
}

int allowed_cpu(const cpu_set_t& allowed, int cpu, int ordinal) noexcept {
    if (cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) return cpu;
    int left = ordinal % CPU_COUNT(&allowed);
    int found = 0;
    while (!CPU_ISSET(static_cast<std::size_t>(found), &allowed) || left-- > 0)
        ++found;
    return found;
}

bool is_openmp_runtime(const void* caller) noexcept {
    Dl_info runtime_object{};
    Dl_info calling_object{};
    const auto* function = reinterpret_cast<const void*>(runtime().level);
    return function && ::dladdr(function, &runtime_object) && ::dladdr(caller, &calling_object) &&
           runtime_object.dli_fbase == calling_object.dli_fbase;
}

void watch_thread_end(bool* alive, Thread** self) noexcept {
    static const int made = ::pthread_key_create(&key, thread_ends);
    watched = {alive, self, false};
    if (made == 0) ::pthread_setspecific(key, &watched);
}

} // namespace homing::simulator
