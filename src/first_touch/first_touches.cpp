#include "first_touch/first_touches.hpp"

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/raw_calls.hpp"
#include "first_touch/touched_extents.hpp"
#include "record/record.hpp"
#include "sources/samplers.hpp"

#include <algorithm>
#include <cmath>
#include <sched.h>
#include <string_view>

namespace homing {
namespace {

constinit std::atomic<FirstTouches*> of_this_process{nullptr};

/// Threads that the program has made before perf was ready: a ring and a descriptor of the kernel's each.
constexpr std::size_t most_others = 1024;
/// First touches that are missed, in pages and of all: fewer change nothing in what is said of arrays.
constexpr std::uint64_t least_missed = 1024;
constexpr double least_missed_share = .05;

/// memset() and its like touch memory for whoever calls them.
bool is_c_library(const LoadedFile& file) noexcept {
    std::string_view name = file.path;
    name.remove_prefix(name.rfind('/') + 1);
    return name.starts_with("libc.so") || name.starts_with("libc-");
}

/// The code that a sample tells of. The C library's functions of memory have no frame: what lies at the
/// stack pointer is where they return to.
Address code_of(const FaultSample& sample, WatchList& watch) {
    const ObjectPlace place = watch.recorded_place(sample.instruction);
    if (!place.file || !is_c_library(*place.file) || sample.stack_top == 0) return sample.instruction;
    const ObjectPlace caller = watch.recorded_place(sample.stack_top - 1);
    return caller.file && !is_c_library(*caller.file) ? sample.stack_top - 1 : sample.instruction;
}

} // namespace

FirstTouches::FirstTouches(Kernel& kernel, std::string proc, std::string sysfs)
    : kernel_(kernel), proc_(std::move(proc)), sysfs_(std::move(sysfs)), faults_(kernel) {}

void FirstTouches::begin(std::vector<int> cpus, bool wait) {
    char text[64] = {};
    raw::read_file((sysfs_ + "/kernel/mm/transparent_hugepage/enabled").c_str(), text, sizeof text - 1);
    huge_ = std::string_view(text).find("[always]") != std::string_view::npos;
    cpus_ = std::move(cpus);
    thread_ = static_cast<int>(raw::call(SYS_gettid));
    began_ = monotonic_seconds();
    faults_before_ = kernel_.page_faults();
    if (wait) {
        open_all(this);
        return;
    }
    if (opener_.start(open_all, this, 0)) return;
    why_not_ = "no thread could be made";
    state_.store(State::refused, std::memory_order_release);
}

/// [opener]
double FirstTouches::open_all(void* self) noexcept {
    auto& touches = *static_cast<FirstTouches*>(self);
    State state = State::refused;
    try {
        const int error = touches.open();
        if (error) touches.why_not_ = explain_sampler_error(error, touches.proc_.c_str());
        if (!error) state = State::open;
    } catch (...) {
        touches.faults_.close();
        touches.why_not_ = "out of memory";
    }
    touches.state_.store(state, std::memory_order_release);
    return -1;
}

int FirstTouches::open() {
    // Of this thread: it waits for perf. The threads that are then there are those that the program has made
    // without events to inherit.
    FaultSamples first(kernel_);
    const int own = static_cast<int>(raw::call(SYS_gettid));
    if (const int error =
            first.open(own, {}, std::span(cpus_).first(std::min<std::size_t>(1, cpus_.size())), huge_))
        return error;
    std::vector<int> others;
    for (const Kernel::Thread& thread : kernel_.threads())
        if (thread.number != thread_ && !HelperThread::is_ours(thread.number) && others.size() < most_others)
            others.push_back(thread.number);
    opened_ = monotonic_seconds();
    faults_opened_ = kernel_.page_faults();
    return faults_.open(thread_, others, cpus_, huge_);
}

std::uint64_t FirstTouches::missed() noexcept {
    const std::uint64_t before = faults_opened_ - std::min(faults_opened_, faults_before_);
    const std::uint64_t all = kernel_.page_faults() - std::min(kernel_.page_faults(), faults_before_);
    const bool many = static_cast<double>(before) >= least_missed_share * static_cast<double>(all);
    return before >= least_missed && many ? before : 0;
}

void FirstTouches::abandon() noexcept {
    opener_.abandon();
    if (state_.load(std::memory_order_acquire) == State::open) faults_.abandon();
}

void FirstTouches::look() {
    if (state_.load(std::memory_order_acquire) == State::open) faults_.drain(samples_);
}

void FirstTouches::rows(WatchList& watch, const NodeMap& nodes) {
    opener_.stop_and_wait();
    if (state_.load(std::memory_order_acquire) != State::open) {
        record::fact("first_touch", "unknown: " + why_not_);
        return;
    }
    look();
    faults_.close();
    long balancing = 0;
    read_number(proc_ + "/sys/kernel/numa_balancing", balancing);
    TouchedExtents touched({.huge = huge_, .hint_faults = (balancing & 1) != 0});
    for (const FaultSample& sample : samples_)
        touched.add(sample.address, code_of(sample, watch), sample.thread,
                    nodes.position(kernel_.node_of_cpu(sample.cpu)), sample.time, sample.stands_for);
    const double later = record::now() - monotonic_seconds();
    for (const TouchedExtent& extent : touched.extents()) {
        const ObjectPlace place = watch.recorded_place(extent.code);
        if (!place.file) continue;
        record::first_touch_row row;
        row.object = record::text(place.file->path);
        row.offset = place.offset;
        row.symbol = record::text(watch.symbol(extent.code));
        row.begin = extent.range.begin;
        row.end = extent.range.end;
        row.thread = extent.thread;
        row.node = extent.node;
        row.samples = extent.samples;
        row.faults = extent.faults;
        row.time = extent.first + later;
        row.last = extent.last + later;
        record::append(row);
    }
    const std::string after = std::to_string(std::lround(1e3 * (opened_ - began_))) + " ms";
    record::fact("first_touch",
                 "page faults, one of " +
                     std::to_string(huge_ ? FaultSamples::period_of_huge_pages : FaultSamples::period) +
                     ", from " + after + " on");
    if (const std::uint64_t early = missed())
        record::message(record::Level::note, "first touches of the first " + after + ", about " +
                                                 std::to_string(early) +
                                                 " pages, are not known: perf was not ready");
    if (const std::uint64_t lost = faults_.lost() + touched.left_out(); lost > 0)
        record::message(record::Level::note, "first touches of about " + std::to_string(lost) +
                                                 " pages are not known: there were too many at once");
}

FirstTouches* first_touches() noexcept { return of_this_process.load(std::memory_order_acquire); }

void watch_first_touches(Kernel& kernel, bool wait) noexcept {
    try {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        std::vector<int> cpus;
        if (raw::call(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0)
            for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
                if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
        auto* watched = new FirstTouches(kernel); // never destroyed: used until the very end of the process
        watched->begin(std::move(cpus), wait);
        of_this_process.store(watched, std::memory_order_release);
    } catch (...) {
        of_this_process.store(nullptr, std::memory_order_release); // nothing is known of them, then
    }
}

} // namespace homing
