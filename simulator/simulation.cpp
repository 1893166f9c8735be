// The simulation as the engine and the hooks know it (src/machine/simulation.hpp): counts by region and
// iteration, areas, and the rows of the record. Everything but the counting itself, which is the model's.
#include "machine/simulation.hpp"

#include "areas/areas.hpp"
#include "balancing.hpp"
#include "base/inside.hpp"
#include "base/options.hpp"
#include "base/program_name.hpp"
#include "base/raw_calls.hpp"
#include "engine/engine.hpp"
#include "interrupted.hpp"
#include "kernel.hpp"
#include "marks.hpp"
#include "model.hpp"
#include "record/record.hpp"
#include "sources/region_table.hpp"
#include "turns.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <map>

namespace homing::simulator {
namespace {

enum Scope : record::u32 { whole_run = 0, iteration = 1, region = 2, area = 3, place = 4, phase = 5 };

/// Iterations beyond this are counted together, into one last row of them. By reason: of longer runs the
/// record would be mostly these rows.
constexpr std::uint32_t most_iterations = 2000;

void append_misses(Scope scope, record::u32 id, const std::vector<std::uint64_t>& misses) {
    const auto nodes = static_cast<std::size_t>(described().nodes());
    for (std::size_t from = 0; from < nodes; ++from)
        for (std::size_t first = 0; first < nodes; first += 8) {
            record::misses_row row;
            row.scope = scope;
            row.id = id;
            row.from = static_cast<record::u32>(from);
            row.first = static_cast<record::u32>(first);
            std::uint64_t any = 0;
            for (std::size_t k = first; k < std::min(nodes, first + 8); ++k)
                any |= row.to[k - first] = misses[from * nodes + k];
            if (any != 0) record::append(row);
        }
}

/// What was simulated, once, in front of the first counts: of a process that is killed they are all there is.
void say_what_is_simulated() {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) record::fact("simulated", described().fact);
}

void append_counted(Scope scope, record::u32 id, const Totals& counts, std::uint64_t entries,
                    Address code = 0) {
    say_what_is_simulated();
    record::counted_row row;
    row.scope = scope;
    row.id = id;
    row.entries = entries;
    row.accesses = counts.accesses;
    row.invalidation_misses = counts.invalidations;
    row.upgrades = counts.upgrades;
    row.shared_hits = counts.shared_hits;
    row.offset = code;
    Dl_info found{};
    if (code && ::dladdr(reinterpret_cast<void*>(code), &found)) {
        row.object = record::text(found.dli_fname ? found.dli_fname : "");
        row.offset = code - reinterpret_cast<Address>(found.dli_fbase);
        row.symbol = record::text(found.dli_sname ? found.dli_sname : "");
    }
    if (scope == whole_run) row.oracle_remote = oracle_remote();
    record::append(row);
    if (!counts.misses.empty()) append_misses(scope, id, counts.misses);
}

/// What an access may escape by: code that was not instrumented, and constants, whose reads no compiler
/// instruments.
struct NotCounted {
    std::string objects;
    std::string constants;
    bool libnuma = false;
};
int add_not_counted(dl_phdr_info* info, std::size_t, void* out);

/// In front of the engine: what was missed between two events belongs to the region, and to the iteration.
class Counting final : public phases::Listener {
  public:
    explicit Counting(Engine* engine) : engine_(engine) {}

    void region_begin(Address function) noexcept override {
        try {
            begin(function);
        } catch (...) {
            open_ = false;
        }
    }
    void region_end() noexcept override {
        if (engine_) engine_->region_end();
        try {
            if (open_) {
                const Totals now = totals();
                regions_[current_].counts.add_difference(now, region_start_);
            }
        } catch (...) {
            record::message(record::Level::not_done, "out of memory: counts of a region are missing");
        }
        open_ = false;
        next_epoch();
    }
    bool barrier(Address site) noexcept override {
        if (!engine_) return false;
        const bool tells = engine_->barrier(site);
        if (take_protections()) forget_filters();
        follow_iteration();
        return tells;
    }
    void barrier_passed() noexcept override {
        if (engine_) engine_->barrier_passed();
    }

    void report() {
        const Totals now = totals();
        append_counted(whole_run, 0, now, 1);
        end_iterations(now);
        for (std::uint32_t i = 0; i < regions_.size(); ++i)
            append_counted(region, i, regions_[i].counts, regions_[i].entries, table_[i].function);
    }

    bool has_engine() const noexcept { return engine_ != nullptr; }

  private:
    struct Counted {
        Totals counts;
        std::uint64_t entries = 0;
    };

    void begin(Address function) {
        next_epoch();
        if (engine_) engine_->region_begin(function);
        if (take_protections()) forget_filters();
        follow_iteration();
        current_ = table_.index(function);
        if (regions_.size() <= current_) regions_.resize(current_ + 1);
        ++regions_[current_].entries;
        region_start_ = totals();
        open_ = true;
    }

    void follow_iteration() noexcept {
        if (!engine_ || engine_->iteration() == iteration_) return;
        try {
            if (iteration_ <= most_iterations) end_iterations(totals());
        } catch (...) {
            record::message(record::Level::not_done, "out of memory: counts of an iteration are missing");
        }
        iteration_ = engine_->iteration();
    }

    /// Of the newest iteration, or of all that have no row of their own.
    void end_iterations(const Totals& now) {
        Totals counts;
        counts.add_difference(now, iteration_start_);
        iteration_start_ = now;
        const std::uint32_t first = std::min(iteration_, most_iterations + 1);
        append_counted(iteration, first, counts, iteration_ - first + 1);
    }

    Engine* engine_;
    RegionTable table_;
    std::vector<Counted> regions_;
    std::uint32_t current_ = 0;
    bool open_ = false;
    std::uint32_t iteration_ = 0;
    Totals region_start_;
    Totals iteration_start_;
};

class ModelSimulation final : public Simulation {
  public:
    Kernel& kernel() noexcept override { return model_kernel(); }
    Machine machine() override { return machine_of(described()); }
    bool balances() const noexcept override { return described().balancing.scan_accesses > 0; }
    ReferenceSource* make_source() override { return make_model_source(); }

    phases::Listener* listen(Engine* engine) override {
        counting_ = new Counting(engine); // lives as long as the process
        return counting_;
    }

    void record_threads() override {
        int count = 0;
        for (int id = 0; id < thread_count(); ++id) {
            const Thread& one = thread(id);
            if (one.node < 0) continue;
            record::thread_row row;
            row.thread = static_cast<record::u32>(one.system_id);
            row.node = one.node;
            row.cpu = one.cpu;
            row.bound = 1;
            row.time = record::now();
            record::append(row);
            ++count;
        }
        record::fact("threads", std::to_string(count));
        record::fact("binding", "bound");
    }

    void area_begins(std::uint32_t id, Range range, const char* name) override {
        if (numbers_.size() == most_areas) {
            ++areas_left_out_;
            return;
        }
        std::uint32_t number = static_cast<std::uint32_t>(numbers_.size());
        if (!free_numbers_.empty()) {
            number = free_numbers_.back();
            free_numbers_.pop_back();
        }
        numbers_.emplace(id, number);
        begin_area(number, range, name);
    }
    /// A program's temporaries are without number: those that are gone have their counts in the record only.
    void area_ends(std::uint32_t id, Range range) override {
        const auto ended = numbers_.find(id);
        if (ended == numbers_.end()) return;
        end_area(ended->second, range);
        append_area(id, ended->second);
        release_area(ended->second);
        free_numbers_.push_back(ended->second);
        numbers_.erase(ended);
    }

    void freed(Range range, bool gone) noexcept override {
        if (gone) forget(range);
        // The allocator may have given back what lies at the end of the heap.
        const auto top = static_cast<Address>(raw::call(SYS_brk, 0));
        Address before = heap_top_.load(std::memory_order_relaxed);
        while (before != top && !heap_top_.compare_exchange_weak(before, top, std::memory_order_relaxed)) {
        }
        if (before > top) forget({align_up(top, page_bytes()), align_up(before, page_bytes())});
    }
    void unmapped(Range range) noexcept override { forget(range); }
    void remapped(Range from, Range to) noexcept override { move_pages_of(from, to); }

    void touched(const void* memory, std::size_t bytes) noexcept override {
        const Thread* one = current_thread();
        if (!one || bytes == 0) return;
        const auto begin = reinterpret_cast<Address>(memory);
        for (Address page = align_down(begin, page_bytes()); page < begin + bytes; page += page_bytes())
            populate(page, one->node);
    }

    void report() noexcept override {
        if (reported_ || thread_count() == 0) return; // nothing instrumented ran
        reported_ = true;
        try {
            write_report();
        } catch (...) {
            record::message(record::Level::not_done, "out of memory at the end: counts are missing");
        }
    }

    void finish(Engine* engine) noexcept override {
        if (finished_.exchange(true)) return;
        if (engine) {
            engine->finish();
            return;
        }
        if (thread_count() == 0) return;
        const Inside inside;
        phases::step_aside();
        if (!record::is_open()) {
            record::open(option_text(Option::record));
            record::fact("machine", machine().source);
            record::fact("mechanism", "observe");
            record::fact("source", "simulator");
            record_nodes();
        }
        report();
        record::end_row row;
        row.time = record::now();
        record::append(row);
        record::close();
    }

    void abandon() noexcept override { abandon_model(); }

  private:
    void record_nodes() {
        const Described& stated = described();
        for (int index = 0; index < stated.nodes(); ++index) {
            record::node_row row;
            row.index = row.position = index;
            row.cpus = stated.cpus_of(index);
            row.memory_bytes = stated.memory[static_cast<std::size_t>(index)];
            row.free_bytes = free_bytes_of(index);
            row.target = 1;
            record::append(row);
        }
    }

    static void append_area(std::uint32_t id, std::uint32_t number) {
        Totals counts;
        add_area_misses(number, counts.misses);
        append_counted(area, id, counts, 1);
    }

    void write_report() {
        say_what_is_simulated();
        record_threads();
        if (!counting_) counting_ = new Counting(nullptr); // no parallel region: the run alone
        counting_->report();
        for (const auto& [id, number] : numbers_)
            append_area(id, number);
        if (areas_left_out_ > 0)
            record::message(record::Level::note, std::to_string(areas_left_out_) +
                                                     " arrays were not counted one by one: " +
                                                     std::to_string(most_areas) + " others lived then");
        report_places();
        for (const Phase& one : marked_phases())
            append_counted(phase, one.number, one.counts, one.entries);
        NotCounted others;
        ::dl_iterate_phdr(add_not_counted, &others);
        if (!others.objects.empty())
            record::message(record::Level::note,
                            "not compiled by homing cc, so not counted but for memcpy and the like: " +
                                others.objects);
        if (!others.constants.empty())
            record::message(record::Level::note, "reads of constants are not counted: up to " +
                                                     others.constants + " of read-only data");
        if (others.libnuma)
            record::message(record::Level::note,
                            "libnuma is loaded: its numa_...() functions see this computer's nodes and place "
                            "nothing on the described machine (mbind, set_mempolicy, get_mempolicy and "
                            "move_pages do)");
        if (turns_were_cut())
            record::message(
                record::Level::note,
                "a thread ran without an access for a while and its turn was cut (it waited without "
                "sleep, or a library worked): counts may differ between runs");
        record::simulated_row row;
        row.moved_pages = move_totals().pages.load();
        row.move_calls = move_totals().calls.load();
        row.page_bytes = page_bytes();
        record::append(row);
        if (!balances()) return;
        record::balanced_row balanced;
        balanced.scans = balancing_round();
        balanced.hint_faults = balancing_totals().hint_faults.load();
        balanced.moved_pages = balancing_totals().moved_pages.load();
        record::append(balanced);
    }

    void report_places() {
        const auto nodes = static_cast<std::size_t>(described().nodes());
        std::map<const void*, std::vector<std::uint64_t>> places;
        for_each_place([&](const void* pc, int node, const std::uint64_t* misses) {
            std::vector<std::uint64_t>& matrix = places[pc];
            matrix.resize(nodes * nodes);
            for (std::size_t home = 0; home < nodes; ++home)
                matrix[static_cast<std::size_t>(node) * nodes + home] += misses[home];
        });
        record::u32 index = 0;
        for (auto& [pc, misses] : places) {
            Totals counts;
            counts.misses = std::move(misses);
            append_counted(place, index++, counts, 1, reinterpret_cast<Address>(pc));
        }
    }

    Counting* counting_ = nullptr;
    std::map<std::uint32_t, std::uint32_t> numbers_; ///< of areas as they live: their numbers in the model
    std::vector<std::uint32_t> free_numbers_;
    std::uint64_t areas_left_out_ = 0;
    bool reported_ = false;
    std::atomic<bool> finished_{false};
    std::atomic<Address> heap_top_{0};
};

/// Objects that were compiled by `homing cc`: their callbacks asked for the simulator.
constexpr std::size_t most_objects = 64;
constinit std::atomic<const void*> instrumented[most_objects] = {};

void note_instrumented(const void* code) noexcept {
    Dl_info found{};
    if (!::dladdr(code, &found)) return;
    for (std::atomic<const void*>& slot : instrumented) {
        const void* expected = nullptr;
        if (slot.compare_exchange_strong(expected, found.dli_fbase) || expected == found.dli_fbase) return;
    }
}

/// Parts of the system whose accesses are no part of a computation.
constexpr const char* unremarkable[] = {"ld-linux",   "libc.so",   "libdl.so",  "libpthread.so", "librt.so",
                                        "linux-vdso", "libgcc_s.", "libgomp.",  "libomp.",       "libiomp5.",
                                        "libhoming",  "libtsan.",  "libstdc++", "libatomic."};

/// Constants of an object from this size on are named.
constexpr std::uint64_t named_constants = 64 << 10;

bool is_instrumented(const char* path) noexcept {
    for (const std::atomic<const void*>& slot : instrumented) {
        Dl_info found{};
        const void* base = slot.load();
        if (base && ::dladdr(base, &found) && found.dli_fname && std::strcmp(found.dli_fname, path) == 0)
            return true;
    }
    return false;
}

/// Read-only data lie behind the code; what lies before it are tables of the linker.
std::uint64_t read_only_bytes(const dl_phdr_info& info) noexcept {
    bool code_seen = false;
    std::uint64_t bytes = 0;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto& segment = info.dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        if (code_seen && segment.p_flags == PF_R) bytes += segment.p_memsz;
        code_seen |= (segment.p_flags & PF_X) != 0;
    }
    return bytes;
}

int add_not_counted(dl_phdr_info* info, std::size_t, void* out) {
    const char* path = info->dlpi_name ? info->dlpi_name : "";
    const char* slash = std::strrchr(path, '/');
    const char* name = slash ? slash + 1 : path;
    auto& others = *static_cast<NotCounted*>(out);
    // The program has no name here: without it there would be no counts at all.
    if (!*name || is_instrumented(path)) {
        if (const std::uint64_t bytes = read_only_bytes(*info); bytes >= named_constants)
            others.constants += (others.constants.empty() ? "" : ", ") +
                                std::string(*name ? name : ::program_invocation_short_name) + " " +
                                std::to_string(bytes >> 10) + " KiB";
        return 0;
    }
    others.libnuma |= std::strncmp(name, "libnuma.so", 10) == 0;
    for (const char* known : unremarkable)
        if (std::strncmp(name, known, std::strlen(known)) == 0) return 0;
    others.objects += (others.objects.empty() ? "" : ", ") + std::string(name);
    return 0;
}

/// Read what `homing run --on MACHINE` wrote down. Null: nothing is simulated in this process.
Simulation* make_simulation() noexcept {
    const char* path = std::getenv("HOMING_SIMULATOR");
    if (!path || !*path || option_is(Option::homing, "off")) return nullptr;
    const char* only = option_text(Option::only);
    if (*only && !program_is(only)) return nullptr;
    const Inside inside;
    try {
        auto* given = new Described; // lives as long as the process
        std::string problem = read_described(path, *given);
        if (problem.empty()) problem = prepare_model(*given);
        if (problem.empty()) {
            stated_page_bytes = given->page;
            auto* made = new ModelSimulation;
            // The C interface and locality queues ask for it before, or without, the engine.
            play_machine(made->kernel(), made->machine());
            return made;
        }
        std::fprintf(stderr, "homing: nothing is simulated: %s\n", problem.c_str());
    } catch (...) {
        std::fputs("homing: nothing is simulated: out of memory\n", stderr);
    }
    return nullptr;
}

const homing_simulator hooks{[]() -> homing_context* {
                                 Thread* one = attach();
                                 return one ? &one->context : nullptr;
                             },
                             access};

} // namespace
} // namespace homing::simulator

extern "C" {

void homing_prepare_simulation() noexcept {
    static const bool done = [] {
        const int saved = errno;
        if (homing::Simulation* made = homing::simulator::make_simulation()) homing::set_simulation(made);
        errno = saved;
        return true;
    }();
    (void)done;
}

__attribute__((visibility("default"))) const homing_simulator* homing_simulator_enter_1() noexcept {
    homing_prepare_simulation();
    if (!homing::simulation()) return nullptr;
    homing::simulator::note_instrumented(__builtin_return_address(0));
    homing::simulator::take_signals();
    return &homing::simulator::hooks;
}

} // extern "C"
