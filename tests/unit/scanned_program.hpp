// A pretended program that the kernel's scans for hint faults observe (simulated_program.hpp).
#pragma once

#include "simulated_program.hpp"
#include "sources/references.hpp"

#include <initializer_list>
#include <set>
#include <vector>

namespace homing {

/// References as the kernel's scans for hint faults give them: a touch of a granule that a scan has armed
/// since it was touched last is one. Nothing is armed that is not observed.
class Scanned final : public ReferenceSource {
  public:
    const char* name() const noexcept override { return "scanned"; }
    std::string unavailable() override { return {}; }
    bool start(std::span<const WatchedRange> ranges) override {
        ranges_.assign(ranges.begin(), ranges.end());
        return true;
    }
    void stop() override {
        ranges_.clear();
        armed_.clear();
    }
    void drain(std::vector<Reference>& out) override {
        out.insert(out.end(), seen_.begin(), seen_.end());
        seen_.clear();
    }
    bool scans() const noexcept override { return true; }

    void scan(Range part) {
        for (const WatchedRange& watched : ranges_)
            for (Address page = std::max(part.begin, watched.range.begin);
                 page < std::min(part.end, watched.range.end); page += page_bytes())
                armed_.insert(page);
    }
    /// in_window: the page was armed by a window. That is a page fault, too.
    void touch(Address page, int node, int thread, bool in_window) {
        if (armed_.erase(page) == 0 && !in_window) return;
        Reference reference;
        reference.address = page;
        reference.node = static_cast<std::int16_t>(node);
        reference.thread = thread;
        reference.time = clock_seconds();
        seen_.push_back(reference);
    }

  private:
    std::vector<WatchedRange> ranges_;
    std::set<Address> armed_;
    std::vector<Reference> seen_;
};

/// A program of two arrays of the same size, the pages of both dealt out round robin, that uses both in each
/// iteration; what of them the kernel scans before an iteration is up to the test.
class ScannedProgram : public Program {
  public:
    explicit ScannedProgram(std::size_t pages) : Program(2 * pages) {
        area_registry().end(range.begin);
        const Address origin[max_origin_frames] = {0x1234};
        for (const Range& array : {first(), second()})
            area_registry().note(array, AreaKind::heap_block, origin, 1, nullptr);
        initialise([](std::size_t page) { return static_cast<int>(page % nodes); });
    }
    ~ScannedProgram() { area_registry().end(second().begin); }
    Range first() const { return part(0, pages() / 2); }
    Range second() const { return part(pages() / 2, pages()); }
    /// asks: with windows beside the scans.
    bool start_scanned(bool asks = false) {
        engine = std::make_unique<Engine>(kernel, machine_of(nodes, 1 << 16), HookServices{});
        auto source = std::make_unique<Scanned>();
        source_ = source.get();
        return engine->start(std::move(source), asks);
    }
    int owner(std::size_t page, std::size_t count) const {
        const auto node = static_cast<int>(page * nodes / count);
        return turned_ ? nodes - 1 - node : node;
    }
    /// The first node has the last one's part from now on, and so on.
    void turn_owners() { turned_ = true; }
    void iterate_scanned(double seconds, std::initializer_list<Range> scanned, bool uses_second = true) {
        for (const Range& range_scanned : scanned)
            source_->scan(range_scanned);
        const std::size_t half = pages() / 2;
        engine->region_begin(0x1000);
        for (std::size_t page = 0; page < (uses_second ? pages() : half); ++page) {
            const int node = owner(page % half, half);
            const std::size_t faults_before = faults;
            touch(page, node);
            source_->touch(range.begin + page * page_bytes(), node, kernel.current_thread(),
                           faults > faults_before);
        }
        simulated_seconds += seconds;
        engine->region_end();
    }
    bool is_home(Range array) const {
        const std::size_t half = pages() / 2;
        std::size_t right = 0;
        for (std::size_t page = 0; page < half; ++page)
            right += simulated.where(array.begin + page * page_bytes()) == owner(page, half);
        return right >= half * 97 / 100;
    }

  private:
    Scanned* source_ = nullptr;
    bool turned_ = false;
};

} // namespace homing
