#include "model.hpp"

#include "balancing.hpp"
#include "base/inside.hpp"
#include "base/own_mappings.hpp"
#include "base/raw_calls.hpp"
#include "interrupted.hpp"
#include "sources/windows.hpp"
#include "tables.hpp"
#include "threads.hpp"
#include "turns.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <linux/mempolicy.h>
#include <mutex>

namespace homing::simulator {

constinit Tables table;
constinit const Described* stated = nullptr;
constinit std::mutex seldom;

namespace {

// A line's state in the directory: owner << 20 | version.
constexpr unsigned version_bits = 20;
constexpr std::uint32_t version_mask = (1u << version_bits) - 1;
constexpr std::uint32_t owner_nobody = 0;
constexpr std::uint32_t owner_several = 1;
constexpr std::uint32_t owner_first = 2; ///< + id of the thread that has it exclusively
static_assert(most_threads + owner_first < 1u << (32 - version_bits));

constexpr std::uint64_t no_line = ~std::uint64_t{0}; ///< in a filter
// In a cache 0 is an empty place: no program has anything in its line 0.
constexpr std::uint64_t empty = 0;
constexpr std::uint64_t filter_part = 8;
constexpr std::int64_t endless = std::int64_t{1} << 62;

constinit Kept<std::vector<SharedCache>> shared_caches;
constinit Thread* threads[most_threads] = {};
constinit std::atomic<int> threads_made{0};
constinit std::atomic<std::uint32_t> epoch{1};
constinit std::atomic<bool> abandoned{false};
constinit thread_local Thread* self = nullptr;

std::uint64_t sets_of(const Cache& cache) { return cache.bytes / stated->line / cache.ways; }

template <class T> T* reserve(std::uint64_t count) noexcept {
    void* memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

/// One of the few that are large, and no memory of the program's.
template <class T> T* reserve_table(std::uint64_t count) noexcept {
    T* const memory = reserve<T>(count);
    const auto begin = reinterpret_cast<Address>(memory);
    if (memory) own_mappings.add(begin, begin + count * sizeof(T));
    return memory;
}

/// Accesses until a thread must come to access() whatever its filter says.
std::int64_t grant() noexcept {
    if (stated->turn > 0) return stated->turn;
    const std::int64_t tick = balancing_tick();
    return tick > 0 ? tick : endless;
}

/// Take lines out of a filter.
void forget_line(Thread& one, std::uint64_t line) noexcept {
    const unsigned parts = table.line_shift - HOMING_FILTER_SHIFT;
    for (std::uint64_t part = line << parts; part < (line + 1) << parts; ++part) {
        std::uint64_t& entry = one.context.filter[homing_filter_slot(part, one.context.mask)];
        if (__atomic_load_n(&entry, __ATOMIC_RELAXED) >> 1 == part)
            __atomic_store_n(&entry, no_line, __ATOMIC_RELAXED);
    }
}

bool filter_holds(const Thread& one, std::uint64_t line) noexcept {
    const unsigned parts = table.line_shift - HOMING_FILTER_SHIFT;
    for (std::uint64_t part = line << parts; part < (line + 1) << parts; ++part)
        if (one.context.filter[homing_filter_slot(part, one.context.mask)] >> 1 == part) return true;
    return false;
}

void count_place(Thread& one, const void* pc, int home) noexcept {
    const std::size_t bytes = place_bytes();
    if (2 * (one.place_count + 1) > one.place_slots) {
        const std::uint32_t slots = one.place_slots ? 2 * one.place_slots : 1024;
        char* fresh = reserve<char>(slots * bytes);
        if (!fresh) return;
        for (std::uint32_t i = 0; i < one.place_slots; ++i) {
            const auto* old = reinterpret_cast<const Place*>(one.places + i * bytes);
            if (!old->pc) continue;
            std::size_t at = mix(reinterpret_cast<Address>(old->pc)) & (slots - 1);
            while (reinterpret_cast<Place*>(fresh + at * bytes)->pc)
                at = (at + 1) & (slots - 1);
            std::memcpy(fresh + at * bytes, old, bytes);
        }
        if (one.places) ::munmap(one.places, one.place_slots * bytes);
        one.places = fresh;
        one.place_slots = slots;
    }
    std::size_t at = mix(reinterpret_cast<Address>(pc)) & (one.place_slots - 1);
    for (;; at = (at + 1) & (one.place_slots - 1)) {
        auto* place = reinterpret_cast<Place*>(one.places + at * bytes);
        if (place->pc && place->pc != pc) continue;
        if (!place->pc) {
            place->pc = pc;
            ++one.place_count;
        }
        ++place->misses[home];
        return;
    }
}

void go_to(Thread& one, int cpu) {
    const int node = stated->node_of_cpu(cpu);
    one.cpu = cpu;
    if (stated->shared.bytes) {
        const int cache = stated->cpu_caches[static_cast<std::size_t>(cpu)];
        one.shared = &shared_caches.value[static_cast<std::size_t>(cache)];
    }
    if (node == one.node) return;
    if (one.node >= 0) {
        const std::lock_guard lock(seldom);
        fold_areas(one);
        one.moved = true;
    }
    one.node = node;
    one.row = one.matrix + static_cast<std::ptrdiff_t>(node) * table.nodes;
}

void look_where(Thread& one) noexcept {
    one.epoch = epoch.load(std::memory_order_relaxed);
    one.order = static_cast<std::uint64_t>(one.ordinal);
    const int cpu = cpu_of_caller(*stated, one.main, one.ordinal, one.order);
    go_to(one, one.bound ? allowed_cpu(one.allowed, cpu, one.ordinal) : cpu);
}

cpu_set_t all_cpus() noexcept {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < std::min(stated->cpu_slots(), CPU_SETSIZE); ++cpu)
        if (stated->node_of_cpu(cpu) >= 0) CPU_SET(cpu, &all);
    return all;
}

/// A miss that the shared cache does not serve either.
__attribute__((noinline)) void miss(Thread& one, std::uint64_t page, int home, const void* pc) noexcept {
    ++one.row[home];
    const std::uint32_t area = __atomic_load_n(&table.page_area[page], __ATOMIC_RELAXED);
    if (area != 0 && area != of_ended_area)
        ++one.area_misses[static_cast<std::size_t>(area - 1) * static_cast<std::size_t>(table.nodes) +
                          static_cast<std::size_t>(home)];
    __atomic_fetch_add(&table.page_misses[page * static_cast<std::uint64_t>(table.nodes) +
                                          static_cast<std::uint64_t>(one.node)],
                       1, __ATOMIC_RELAXED);
    if (table.count_places) count_place(one, pc, home);
}

/// True: the shared cache has the line in this version. Afterwards it has it in any case.
bool shared_has(const SharedCache& cache, std::uint64_t line, std::uint64_t wanted) noexcept {
    std::uint64_t* set = cache.tags + (line & table.shared_set_mask) * table.shared_ways;
    std::uint64_t carried = wanted;
    for (unsigned way = 0; way < table.shared_ways; ++way) {
        const std::uint64_t here = __atomic_load_n(&set[way], __ATOMIC_RELAXED);
        __atomic_store_n(&set[way], carried, __ATOMIC_RELAXED);
        if (here >> version_bits == line) return here == wanted;
        carried = here;
    }
    return false;
}

/// Take a line into the private cache; `way` is where an outdated copy of it is, or `ways`.
void take_in(Thread& one, std::uint64_t* set, unsigned way, std::uint64_t wanted) noexcept {
    const unsigned ways = table.ways;
    if (way == ways) {
        way = ways - 1;
        std::uint64_t victim = set[way];
        // Lines of the filter are in use, though the cache has not heard of it: the oldest other one goes.
        for (unsigned tries = 0;
             ways > 1 && tries < 4 && victim != empty && filter_holds(one, victim >> version_bits); ++tries) {
            for (unsigned i = way; i > 0; --i)
                set[i] = set[i - 1];
            set[0] = victim;
            victim = set[way];
        }
        if (victim != empty) forget_line(one, victim >> version_bits);
    }
    for (; way > 0; --way)
        set[way] = set[way - 1];
    set[0] = wanted;
}

/// The directory's part of an access; returns the version that is valid now, and whether the thread may
/// write.
std::uint32_t direct(Thread& one, std::uint64_t line, bool write, bool& exclusive, bool& took_away) noexcept {
    const std::uint32_t me = owner_first + static_cast<std::uint32_t>(one.id);
    std::uint32_t state = __atomic_load_n(&table.directory[line], __ATOMIC_RELAXED);
    std::uint32_t owner = state >> version_bits;
    std::uint32_t version = state & version_mask;
    exclusive = owner == me;
    if (exclusive) return version;
    if (owner == owner_nobody) {
        exclusive = true;
        owner = me;
    } else if (write) {
        version = (version + 1) & version_mask;
        took_away = true;
        if (owner >= owner_first) {
            forget_line(*threads[owner - owner_first], line);
        } else {
            for (int id = 0, count = thread_count(); id < count; ++id)
                if (id != one.id) forget_line(*threads[id], line);
        }
        owner = me;
        exclusive = true;
    } else if (owner >= owner_first) {
        // The owner keeps its copy, but has to ask before it writes again.
        forget_line(*threads[owner - owner_first], line);
        owner = owner_several;
    } else {
        return version;
    }
    __atomic_store_n(&table.directory[line], owner << version_bits | version, __ATOMIC_RELAXED);
    return version;
}

/// A page without a home, a protected or a marked one.
__attribute__((noinline)) PageEntry fault(Thread& one, std::uintptr_t address, std::uint64_t page,
                                          bool write) noexcept {
    const int saved = errno;
    for (int tries = 0; tries < 1000; ++tries) {
        const PageEntry entry = __atomic_load_n(&table.pages[page], __ATOMIC_ACQUIRE);
        if (!(entry & armed)) {
            if (entry & marked) {
                const auto unmarked = static_cast<PageEntry>(~marked);
                // Of two threads one takes the fault, as in a kernel.
                if (__atomic_fetch_and(&table.pages[page], unmarked, __ATOMIC_ACQ_REL) & marked)
                    hint_fault(one, address);
                continue;
            }
            if (entry != 0) break;
            populate(address, one.node);
            continue;
        }
        Windows* windows = active_windows.load(std::memory_order_acquire);
        Windows::Verdict verdict = Windows::Verdict::foreign;
        if (windows) {
            const Inside inside;
            verdict = windows->fault(address, write);
        }
        if (verdict == Windows::Verdict::foreign)
            __atomic_fetch_and(&table.pages[page], static_cast<PageEntry>(~armed), __ATOMIC_RELAXED);
        if (verdict == Windows::Verdict::retry) raw::call(SYS_sched_yield);
    }
    errno = saved;
    const auto entry =
        static_cast<PageEntry>(__atomic_load_n(&table.pages[page], __ATOMIC_RELAXED) & home_mask);
    return entry != 0 ? entry : PageEntry{1}; // taken away at this very moment (munmap by another thread)
}

} // namespace

void forget_lines(Address begin, Address end) noexcept {
    const std::uint64_t first = line_of(begin);
    const std::uint64_t last = first + (end - begin) / stated->line;
    for (std::uint64_t line = first; line < last; ++line) {
        const std::uint32_t state = __atomic_load_n(&table.directory[line], __ATOMIC_RELAXED);
        if (state != 0)
            __atomic_store_n(&table.directory[line], (state + 1) & version_mask, __ATOMIC_RELAXED);
    }
    // A few lines are looked up one by one; for many it is shorter to go through the filters.
    const std::uint64_t from = begin >> HOMING_FILTER_SHIFT;
    const std::uint64_t to = end >> HOMING_FILTER_SHIFT;
    for (int id = 0; id < thread_count(); ++id) {
        Thread& one = *threads[id];
        if (to - from <= one.context.mask) {
            for (std::uint64_t line = first; line < last; ++line)
                forget_line(one, line);
            continue;
        }
        for (std::uint64_t i = 0; i <= one.context.mask; ++i) {
            std::uint64_t& entry = one.context.filter[i];
            const std::uint64_t line = (__atomic_load_n(&entry, __ATOMIC_RELAXED) >> 1) & (address_mask >> 6);
            if (line >= from && line < to) __atomic_store_n(&entry, no_line, __ATOMIC_RELAXED);
        }
    }
}

std::size_t place_bytes() noexcept {
    return sizeof(void*) + static_cast<std::size_t>(table.nodes) * sizeof(std::uint64_t);
}

const Described& described() noexcept { return *stated; }

std::string prepare_model(const Described& given) {
    stated = &given;
    table.line_shift = static_cast<unsigned>(std::countr_zero(stated->line));
    table.page_shift = static_cast<unsigned>(std::countr_zero(stated->page));
    table.nodes = stated->nodes();
    table.ways = stated->own.ways;
    table.set_mask = sets_of(stated->own) - 1;
    table.count_places = stated->lines;
    if (stated->shared.bytes) {
        table.shared_ways = stated->shared.ways;
        table.shared_set_mask = sets_of(stated->shared) - 1;
        shared_caches.value.resize(static_cast<std::size_t>(stated->cache_count()));
        const std::uint64_t lines_of_each = stated->shared.bytes / stated->line;
        auto* tags = reserve_table<std::uint64_t>(shared_caches.value.size() * lines_of_each);
        if (!tags) return "no memory for the shared caches";
        for (SharedCache& cache : shared_caches.value) {
            cache.tags = tags;
            tags += lines_of_each;
        }
    }
    const std::uint64_t lines = std::uint64_t{1} << (address_bits - table.line_shift);
    const std::uint64_t pages = std::uint64_t{1} << (address_bits - table.page_shift);
    const auto nodes = static_cast<std::uint64_t>(table.nodes);
    table.directory = reserve_table<std::uint32_t>(lines);
    table.pages = reserve_table<PageEntry>(pages);
    table.page_area = reserve_table<std::uint32_t>(pages);
    table.page_misses = reserve_table<std::uint32_t>(pages * nodes);
    table.page_seen = reserve_table<std::uint32_t>(pages * nodes);
    table.page_faults = reserve_table<std::uint32_t>(pages);
    if (!table.directory || !table.pages || !table.page_area || !table.page_misses || !table.page_seen ||
        !table.page_faults)
        return "the simulator reserves some 10 TiB of address space (not of memory), which is refused here: "
               "vm.overcommit_memory must not be 2, and ulimit -v must be unlimited";
    return {};
}

Thread* current_thread() noexcept { return self; }
int thread_count() noexcept { return threads_made.load(std::memory_order_acquire); }
Thread& thread(int id) noexcept { return *threads[id]; }
void next_epoch() noexcept { epoch.fetch_add(1, std::memory_order_relaxed); }
void abandon_model() noexcept { abandoned.store(true, std::memory_order_release); }

/// Not through malloc: the program's allocator may be the one that is being instrumented.
Thread* attach() noexcept {
    if (self) return self;
    if (abandoned.load(std::memory_order_acquire)) return nullptr;
    const int saved = errno;
    const Inside inside;
    Thread* one = nullptr;
    {
        const std::lock_guard lock(seldom);
        const int count = thread_count();
        for (int id = 0; id < count && !one; ++id)
            if (!threads[id]->alive) {
                one = threads[id]; // its number, with a cold cache
                ::madvise(one->tags, stated->own.bytes / stated->line * sizeof(std::uint64_t), MADV_DONTNEED);
            }
        if (!one && count < most_threads) {
            one = reserve<Thread>(1);
            if (!one) return nullptr;
            one->id = count;
            one->node = nowhere;
            one->tags = reserve<std::uint64_t>(stated->own.bytes / stated->line);
            one->matrix = reserve<std::uint64_t>(static_cast<std::uint64_t>(table.nodes) *
                                                 static_cast<std::uint64_t>(table.nodes));
            one->area_misses =
                reserve<std::uint32_t>(std::uint64_t{most_areas} * static_cast<unsigned>(table.nodes));
            if (!one->tags || !one->matrix || !one->area_misses) return nullptr;
            // Small beside the cache, whose order of age it hides a little.
            const std::uint64_t lines = stated->own.bytes / 64 / filter_part;
            one->context.mask = std::bit_floor(std::clamp<std::uint64_t>(lines, 64, HOMING_FILTER_LINES)) - 1;
            one->granted = stated->turn > 0 ? 0 : grant(); // its first access waits for its turn
            one->context.left = one->granted;
            threads[count] = one;
            threads_made.store(count + 1, std::memory_order_release);
        }
        if (!one) return nullptr;
        one->alive = true;
        std::memset(one->context.filter, 0xff, sizeof one->context.filter);
        one->system_id = static_cast<int>(raw::call(SYS_gettid));
        one->main = one->system_id == ::getpid();
        one->ordinal = one->id;
        one->bound = false;
    }
    self = one;
    watch_thread_end(&one->alive, &self);
    look_where(*one);
    errno = saved;
    return one;
}

int current_cpu() noexcept {
    Thread* one = attach(); // it may ask before its first access
    if (!one) return -1;
    if (one->epoch != epoch.load(std::memory_order_relaxed)) look_where(*one);
    return one->cpu;
}

bool bind_caller(const cpu_set_t& cpus) noexcept {
    Thread* one = attach();
    const cpu_set_t all = all_cpus();
    cpu_set_t both;
    CPU_AND(&both, &all, &cpus);
    if (!one || CPU_COUNT(&both) == 0) return false;
    one->allowed = both;
    one->bound = true;
    look_where(*one);
    return true;
}

cpu_set_t cpus_of_caller() noexcept {
    const Thread* one = attach();
    return one && one->bound ? one->allowed : all_cpus();
}

void access(homing_context* context, std::uintptr_t address, int is_write, const void* pc) noexcept {
    if (__builtin_expect(signal_came.load(std::memory_order_relaxed) != 0, 0)) end_by_signal();
    Thread& one = *reinterpret_cast<Thread*>(context);
    const bool write = is_write != 0;
    if (__builtin_expect(one.epoch != epoch.load(std::memory_order_relaxed), 0)) look_where(one);
    if (__builtin_expect(context->left < 0, 0)) {
        if (stated->turn > 0) take_turn(one);
        const std::int64_t more = grant();
        one.granted += more;
        context->left += more;
        if (balancing_tick() > 0) clock_balancing(one);
    }
    if (__builtin_expect(one.balancing_round != balancing_round(), 0)) {
        one.balancing_round = balancing_round();
        std::memset(context->filter, 0xff, sizeof context->filter);
    }
    const std::uint64_t page = page_of(address);
    const std::uint64_t line = line_of(address);
    PageEntry entry = __atomic_load_n(&table.pages[page], __ATOMIC_RELAXED);
    if (__builtin_expect(static_cast<PageEntry>(entry - 1) >= home_mask, 0))
        entry = fault(one, address, page, write);

    // Most often the line is where it was left, and the thread may do what it wants: nothing changes.
    const std::uint32_t state = __atomic_load_n(&table.directory[line], __ATOMIC_RELAXED);
    const std::uint32_t owner = state >> version_bits;
    const std::uint32_t before = state & version_mask;
    std::uint64_t* set = one.tags + (line & table.set_mask) * table.ways;
    const std::uint64_t part = address >> HOMING_FILTER_SHIFT;
    std::uint64_t& known = context->filter[homing_filter_slot(part, context->mask)];
    const bool mine = owner == owner_first + static_cast<std::uint32_t>(one.id);
    if (set[0] == (line << version_bits | before) && (mine || (owner == owner_several && !write))) {
        __atomic_store_n(&known, part << 1 | (mine ? 1u : 0u), __ATOMIC_RELAXED);
        return;
    }
    bool exclusive = false;
    bool took_away = false;
    const std::uint32_t version = direct(one, line, write, exclusive, took_away);
    const std::uint64_t wanted = line << version_bits | version;
    unsigned way = 0;
    while (way < table.ways && set[way] >> version_bits != line)
        ++way;
    const bool there = way < table.ways;
    const bool hit = there && (set[way] & version_mask) == before;
    if (hit) {
        one.upgrades += took_away;
        for (; way > 0; --way)
            set[way] = set[way - 1];
        set[0] = wanted;
    } else {
        one.invalidations += there;
        // A copy that the shared cache has from before this write serves it, too.
        const bool shared_hit = table.shared_ways != 0 &&
                                (took_away ? shared_has(*one.shared, line, line << version_bits | before)
                                           : shared_has(*one.shared, line, wanted));
        if (shared_hit)
            ++one.shared_hits;
        else
            miss(one, page, entry - 1, pc);
        take_in(one, set, way, wanted);
    }
    if (took_away && table.shared_ways != 0) shared_has(*one.shared, line, wanted);
    __atomic_store_n(&known, part << 1 | (exclusive ? 1u : 0u), __ATOMIC_RELAXED);
}

void access_range(const void* memory, std::size_t bytes, int write, const void* pc) noexcept {
    Thread* one = self;
    if (!one || bytes == 0) return;
    const auto begin = reinterpret_cast<Address>(memory);
    const Address end = begin + bytes;
    for (Address at = begin; at < end; at = (at | 63) + 1) {
        const std::uint64_t part = at >> HOMING_FILTER_SHIFT;
        const std::uint64_t entry = one->context.filter[homing_filter_slot(part, one->context.mask)];
        if (--one->context.left >= 0 && (write ? entry : entry | 1) == (part << 1 | 1)) continue;
        access(&one->context, at, write, pc);
    }
}

void Totals::add_difference(const Totals& later, const Totals& earlier) {
    accesses += later.accesses - earlier.accesses;
    invalidations += later.invalidations - earlier.invalidations;
    upgrades += later.upgrades - earlier.upgrades;
    shared_hits += later.shared_hits - earlier.shared_hits;
    misses.resize(later.misses.size());
    for (std::size_t i = 0; i < misses.size(); ++i)
        misses[i] += later.misses[i] - (i < earlier.misses.size() ? earlier.misses[i] : 0);
}

Totals totals() {
    Totals sum;
    const auto nodes = static_cast<std::size_t>(table.nodes);
    sum.misses.resize(nodes * nodes);
    for (int id = 0; id < thread_count(); ++id) {
        const Thread& one = *threads[id];
        sum.accesses += static_cast<std::uint64_t>(one.granted - one.context.left);
        sum.invalidations += one.invalidations;
        sum.upgrades += one.upgrades;
        sum.shared_hits += one.shared_hits;
        if (one.node < 0) continue;
        const std::size_t first = one.moved ? 0 : static_cast<std::size_t>(one.node);
        const std::size_t last = one.moved ? nodes : first + 1;
        for (std::size_t i = first * nodes; i < last * nodes; ++i)
            sum.misses[i] += one.matrix[i];
    }
    return sum;
}

void forget_filters() noexcept {
    for (int id = 0; id < thread_count(); ++id)
        std::memset(threads[id]->context.filter, 0xff, sizeof threads[id]->context.filter);
}

} // namespace homing::simulator
