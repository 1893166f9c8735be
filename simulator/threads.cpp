#include "threads.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <pthread.h>

namespace homing::simulator {
namespace {

/// The OpenMP runtime's own account, where there is one.
struct OpenMp {
    int (*level)() = nullptr;
    int (*number)(int) = nullptr;
    int (*size)(int) = nullptr;
};

const OpenMp& runtime() {
    static OpenMp found;
    if (!found.level) { // again while there is none: it may be loaded later
        found.number = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_get_ancestor_thread_num"));
        found.size = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_get_team_size"));
        found.level = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_level"));
    }
    return found;
}

struct Watched {
    bool* alive;
    Thread** self;
};
constinit thread_local Watched watched{nullptr, nullptr};
pthread_key_t key;

void thread_ends(void*) {
    *watched.self = nullptr;
    __atomic_store_n(watched.alive, false, __ATOMIC_RELEASE);
}

} // namespace

Partition place_of(Binding binding, Partition all, std::size_t number, std::size_t team) {
    team = std::max<std::size_t>(team, 1);
    number = std::min(number, team - 1);
    if (binding == Binding::primary) return all;
    if (team > all.count) return {all.first + number * all.count / team, 1}; // several threads a place
    if (binding == Binding::close) return {all.first + number, all.count - number};
    const std::size_t first = number * all.count / team;
    return {all.first + first, (number + 1) * all.count / team - first};
}

int cpu_of_caller(const Described& machine, bool main, int ordinal, std::uint64_t& order) {
    const OpenMp& omp = runtime();
    const int level = omp.level && omp.number && omp.size ? omp.level() : 0;
    Partition places{0, machine.places.size()};
    std::size_t turn = 0;
    if (main) order = 0;
    if (level == 0 && !main) {
        const auto cpus = static_cast<std::size_t>(machine.cpu_count());
        return static_cast<int>(static_cast<std::size_t>(ordinal) % cpus);
    }
    for (int outer = 1; outer <= level; ++outer) {
        const auto number = static_cast<std::size_t>(std::max(omp.number(outer), 0));
        const auto team = static_cast<std::size_t>(std::max(omp.size(outer), 1));
        if (team > places.count) // threads of one place take its CPUs in turn
            turn = number - (number * places.count / team * team + places.count - 1) / places.count;
        order = (outer == 1 ? 0 : order << 12) + number;
        places = place_of(machine.binding, places, number, team);
    }
    const std::vector<int>& place = machine.places[std::min(places.first, machine.places.size() - 1)];
    return place.empty() ? 0 : place[turn % place.size()];
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
    watched = {alive, self};
    if (made == 0) ::pthread_setspecific(key, &watched);
}

} // namespace homing::simulator
