#include "first_touch/first_touches.hpp"

#include "base/clock.hpp"
#include "base/kept_errno.hpp"
#include "base/options.hpp"
#include "first_touch/touched_extents.hpp"
#include "record/record.hpp"
#include "sources/samplers.hpp"

#include <atomic>
#include <pthread.h>
#include <string_view>

namespace homing {
namespace {

constinit std::atomic<FirstTouches*> of_this_process{nullptr};
constinit pthread_key_t key{};

void thread_ends(void* rings) {
    const KeptErrno kept;
    if (FirstTouches* touches = first_touches())
        touches->end_thread(static_cast<FaultSamples::RingsOfThread*>(rings));
}

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

void FirstTouches::begin() {
    char text[64] = {};
    raw::read_file((sysfs_ + "/kernel/mm/transparent_hugepage/enabled").c_str(), text, sizeof text - 1);
    huge_ = std::string_view(text).find("[always]") != std::string_view::npos;
    const int error = faults_.open(huge_, ring_budget(proc_.c_str()) / 2, monotonic_seconds());
    why_not_ = error ? explain_sampler_error(error, proc_.c_str()) : "";
}

void FirstTouches::look() { faults_.drain(samples_); }

void FirstTouches::rows(WatchList& watch, const NodeMap& nodes) {
    if (!faults_.is_open()) {
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
    record::fact("first_touch",
                 "page faults, one of " +
                     std::to_string(huge_ ? FaultSamples::period_of_huge_pages : FaultSamples::period));
    if (const std::uint64_t lost = faults_.lost() + touched.left_out(); lost > 0)
        record::message(record::Level::note, "first touches of about " + std::to_string(lost) +
                                                 " pages are not known: there were too many at once");
    if (const std::uint64_t refused = faults_.refused(); refused > 0)
        record::message(record::Level::note,
                        "first touches by " + std::to_string(refused) +
                            " threads are not known: too many threads began, or perf had no memory "
                            "for them");
}

FirstTouches* first_touches() noexcept { return of_this_process.load(std::memory_order_acquire); }

void watch_first_touches(Kernel& kernel) noexcept {
    try {
        if (::pthread_key_create(&key, thread_ends) != 0) return;
        auto* watched = new FirstTouches(kernel); // never destroyed: used until the very end of the process
        watched->begin();
        of_this_process.store(watched, std::memory_order_release);
    } catch (...) {
        of_this_process.store(nullptr, std::memory_order_release); // nothing is known of them, then
    }
}

bool watches_new_threads() noexcept {
    const FirstTouches* touches = first_touches();
    return touches && touches->is_watching();
}

void watch_new_thread() noexcept {
    if (FirstTouches* touches = first_touches()) ::pthread_setspecific(key, touches->begin_thread());
}

} // namespace homing
