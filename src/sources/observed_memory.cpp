#include "sources/observed_memory.hpp"

#include "base/clock.hpp"
#include "sources/home_runs.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace homing {
namespace {

constexpr std::size_t pieces_of_range = 64; ///< at most, so that a range gets few mappings
constexpr std::size_t chunk_pages = 512;    ///< looked at in one go
/// Chunks looked at when the set of watched ranges has changed: 256 MiB of base pages. The rest comes in
/// turn.
constexpr std::size_t chunks_at_once = 128;
/// Mappings that policies may make of the process's memory: a sixteenth of the kernel's own limit
/// (vm.max_map_count is 65,530 unless it was changed). Each takes a call of mbind: 2.6 us.
constexpr std::size_t most_mappings = 4096;
/// Ranges that are observed, the largest: each makes two mappings at least, its own and the one behind it.
constexpr std::size_t most_ranges = most_mappings / 2;
/// Time for looking and binding, of all time; so much of it may be saved up, in seconds.
constexpr double share_of_time = 0.01;
constexpr double most_saved = 0.01;
/// The longest populated run of a piece is bound, if it is so much of the piece.
constexpr double least_part = 0.25;
/// A node keeps so much free, or nothing is bound to it: the larger of these, the second a part of its
/// memory. (Page reclaim begins at some thousandths.) It counts as recovered at twice that.
constexpr std::uint64_t least_reserve = std::uint64_t{64} << 20;
constexpr std::uint64_t reserve_part = 128;

std::uint64_t reserve_of(const Node& node) noexcept {
    return std::max(least_reserve, node.memory_bytes / reserve_part);
}

/// Bytes of which policies have whole ones, so that no huge page is cut by a policy's border.
std::size_t unit_of(std::size_t granule) noexcept {
    return std::has_single_bit(granule) ? std::max(granule, page_bytes()) : page_bytes();
}

Range whole_granules(Range range, std::size_t granule) noexcept {
    const Range pages = whole_pages(range);
    const std::size_t unit = unit_of(granule);
    const Range inner{align_up(pages.begin, unit), align_down(pages.end, unit)};
    return inner.empty() ? Range{pages.begin, pages.begin} : inner;
}

Range longer(Range a, Range b) noexcept { return a.bytes() >= b.bytes() ? a : b; }

std::vector<WatchedRange> largest(std::span<const WatchedRange> ranges) {
    std::vector<WatchedRange> chosen(ranges.begin(), ranges.end());
    if (chosen.size() <= most_ranges) return chosen;
    const auto bytes = [](const WatchedRange& watched) { return watched.range.bytes(); };
    std::ranges::stable_sort(chosen, std::greater<>(), bytes);
    chosen.resize(most_ranges);
    std::ranges::sort(chosen, {}, [](const WatchedRange& watched) { return watched.range.begin; });
    return chosen;
}

/// The parts of a range that are left when those of `others` (ascending, disjoint) are taken out for which
/// `is` holds.
template <class Others, class Is, class Visit>
void each_left(Range range, const Others& others, Is&& is, Visit&& visit) {
    Address at = range.begin;
    auto other = std::partition_point(others.begin(), others.end(),
                                      [&](const auto& one) { return one.range.end <= range.begin; });
    for (; other != others.end() && other->range.begin < range.end; ++other) {
        if (!is(*other)) continue;
        if (at < other->range.begin) visit(Range{at, other->range.begin});
        at = other->range.end;
    }
    if (at < range.end) visit(Range{at, range.end});
}

} // namespace

ObservedMemory::ObservedMemory(Kernel& kernel, const Machine& machine, const char* proc, PolicyKeeper* keeper)
    : kernel_(kernel), nodes_(machine.nodes), first_target_(machine.targets().first()),
      own_keeper_(keeper ? nullptr : std::make_unique<PolicyKeeper>(kernel)),
      keeper_(keeper ? *keeper : *own_keeper_), populated_(proc) {}

MemoryPolicy ObservedMemory::policy_of(int node) const noexcept {
    return strictly_ ? strictly_observed_policy(node) : observed_policy(node);
}

std::string ObservedMemory::unavailable() {
    const std::size_t bytes = page_bytes();
    void* const page = std::aligned_alloc(bytes, bytes);
    if (!page) return "no memory";
    std::memset(page, 1, bytes);
    const Range range = range_of(page, bytes);
    const std::optional<Range> populated = populated_.first(range, true);
    populated_.close();
    NodeSet allowed;
    int error = kernel_.allowed_nodes(allowed);
    if (error == EOVERFLOW) error = 0; // one node is needed
    MemoryPolicy before;
    if (!error) error = kernel_.policy_at(range.begin, before);
    for (const bool strictly : {false, true}) {
        if (error && !(strictly && error == EINVAL)) break;
        strictly_ = strictly;
        error = kernel_.bind(range, policy_of(allowed.first()));
        if (!error) break;
    }
    const bool unknown = error == EINVAL;
    if (!error) error = kernel_.bind(range, before);
    std::free(page);
    if (unknown) return "Linux 5.12 or later is needed";
    if (error) return std::string("memory policies cannot be set here: ") + std::strerror(error);
    if (!populated) return "/proc/self/pagemap cannot be read";
    return {};
}

/// Pieces of 2 MiB, or larger ones so that they are not more than so many; borders inside the range are those
/// of huge pages.
void ObservedMemory::cut(const WatchedRange& watched, std::size_t most) {
    const Range range = whole_granules(watched.range, watched.granule);
    const std::size_t step = std::max(huge_page_bytes, align_up(range.bytes() / most + 1, huge_page_bytes));
    for (Address begin = range.begin; begin < range.end;) {
        const Address end =
            std::min(range.end, align_up(begin + 1, huge_page_bytes) + step - huge_page_bytes);
        pieces_.push_back({.range = {begin, end}, .granule = watched.granule});
        begin = end;
    }
}

/// What was bound and lies in one of the new pieces stays so; the rest is given back.
void ObservedMemory::keep_bound(std::span<const Piece> before) {
    auto piece = pieces_.begin();
    for (const Piece& old : before)
        for (const Bound& bound : old.bound) {
            while (piece != pieces_.end() && piece->range.end <= bound.range.begin)
                ++piece;
            for (auto one = piece; one != pieces_.end() && one->range.begin < bound.range.end; ++one)
                one->bound.push_back({{std::max(bound.range.begin, one->range.begin),
                                       std::min(bound.range.end, one->range.end)},
                                      bound.node});
            each_left(
                bound.range, std::span(piece, pieces_.end()), [](const Piece&) { return true; },
                [&](Range left) { gone_.push_back(left); });
        }
}

bool ObservedMemory::assign(std::span<const WatchedRange> ranges) {
    const std::vector<Piece> before = std::move(pieces_);
    pieces_.clear();
    const std::vector<WatchedRange> observed = largest(ranges);
    for (const WatchedRange& watched : observed)
        cut(watched, std::min(pieces_of_range, most_mappings / observed.size()));
    keep_bound(before);
    piece_ = at_ = 0;
    looked_ = clock_seconds();
    allowance_ = next_look_at_memory_ = 0;
    notice_lifted();
    look_at_free_memory();
    for (std::size_t ended = 0, chunks = 0; ended < pieces_.size() && chunks < chunks_at_once; ++chunks)
        ended += look_at_chunk() ? 1 : 0;
    populated_.close();
    clear_gone();
    bind_wishes();
    const bool all_refused =
        !pieces_.empty() &&
        std::all_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.refused; });
    return !all_refused;
}

void ObservedMemory::look() {
    if (pieces_.empty()) return;
    const double begin = clock_seconds();
    allowance_ = std::min(allowance_ + share_of_time * (begin - looked_), most_saved);
    looked_ = begin;
    notice_lifted();
    if (begin >= next_look_at_memory_) look_at_free_memory();
    clear_gone();
    // A chunk takes what it takes, and so does binding: the next one waits for as long as that was too much.
    if (allowance_ < 0) return;
    std::size_t ended = 0;
    do
        ended += look_at_chunk() ? 1 : 0;
    while (ended < pieces_.size() && clock_seconds() - begin < allowance_);
    populated_.close();
    clear_gone();
    bind_wishes();
    allowance_ -= clock_seconds() - begin;
}

void ObservedMemory::release() {
    for (Piece& piece : pieces_)
        let_go(piece);
    clear_gone();
    pieces_.clear();
}

/// The keeper took our policy off everything before a fork, and off what was moved by mremap(2).
void ObservedMemory::notice_lifted() {
    const std::uint64_t forks = keeper_.forks(), remaps = keeper_.remaps();
    if (forks == forks_ && remaps == remaps_) return;
    for (Piece& piece : pieces_)
        let_go(piece, [&](const Bound& bound) {
            return forks != forks_ || !keeper_.holds(PolicyKeeper::Layer::observed, bound.range);
        });
    forks_ = forks;
    remaps_ = remaps;
    piece_ = at_ = 0;
}

template <class Is> void ObservedMemory::let_go(Piece& piece, Is&& is) {
    std::erase_if(piece.bound, [&](const Bound& bound) {
        if (!is(bound)) return false;
        gone_.push_back(bound.range);
        return true;
    });
}

void ObservedMemory::let_go(Piece& piece) {
    let_go(piece, [](const Bound&) { return true; });
}

void ObservedMemory::look_at_free_memory() {
    const double begin = clock_seconds();
    for (const Node& node : nodes_) {
        const std::uint64_t free = kernel_.free_bytes(node.index);
        const bool was_short = short_of_memory_.has(node.index);
        const bool is_short = free != 0 && free < (was_short ? 2 : 1) * reserve_of(node); // 0: not known
        if (is_short == was_short) continue;
        short_of_memory_.bits ^= std::uint64_t{1} << node.index;
        for (Piece& piece : pieces_)
            if (is_short) let_go(piece, [&](const Bound& bound) { return bound.node == node.index; });
    }
    const double now = clock_seconds();
    next_look_at_memory_ = now + (now - begin) / share_of_time;
}

/// Ask a page of each block for its node. Memory of which nearly nothing exists is passed over: there may be
/// terabytes of it.
void ObservedMemory::begin_piece() {
    Piece& piece = pieces_[piece_];
    block_ = align_up((piece.range.bytes() + most_blocks - 1) / most_blocks, unit_of(piece.granule));
    blocks_ = (piece.range.bytes() + block_ - 1) / block_;
    for (std::size_t n = 0; n < blocks_; ++n) // in its middle
        probed_[n] = reinterpret_cast<void*>(align_down(
            std::min(piece.range.begin + n * block_ + block_ / 2, piece.range.end - 1), page_bytes()));
    const std::span<int> homes(homes_.data(), blocks_);
    std::fill(homes.begin(), homes.end(), -EFAULT);
    // Where it cannot be asked, the pages themselves are looked at.
    if (kernel_.query({probed_.data(), blocks_}, homes) != 0) std::fill(homes.begin(), homes.end(), -ENOENT);
    // ENOENT is a page that is armed for a hint fault, on kernels up to 6.5.
    const auto perhaps =
        std::count_if(homes.begin(), homes.end(), [](int home) { return home >= 0 || home == -ENOENT; });
    at_ = static_cast<double>(perhaps) < least_part * static_cast<double>(blocks_) ? piece.range.end
                                                                                   : piece.range.begin;
    if (at_ == piece.range.end) let_go(piece);
    run_ = longest_ = {at_, at_};
}

/// True: the piece has ended, and the next begins.
bool ObservedMemory::look_at_chunk() {
    if (at_ == 0) begin_piece();
    Piece& piece = pieces_[piece_];
    const Address end = std::min(piece.range.end, at_ + chunk_pages * page_bytes());
    while (at_ < end) {
        const Range found = populated_.first({at_, end}, forks_ > 0).value_or(Range{end, end});
        if (found.begin > at_) { // from at_ to there nothing is populated
            const Range hole{at_, found.begin};
            let_go(piece, [&](const Bound& bound) { return bound.range.overlaps(hole); });
            longest_ = longer(longest_, run_);
            run_ = {found.begin, found.begin};
        }
        run_.end = at_ = std::max(found.end, found.begin);
    }
    if (at_ < piece.range.end) return false;
    longest_ = longer(longest_, run_);
    end_piece();
    next_piece();
    return true;
}

void ObservedMemory::next_piece() noexcept {
    piece_ = (piece_ + 1) % pieces_.size();
    at_ = 0;
}

/// The whole piece was looked at: what of it should be bound, and where?
void ObservedMemory::end_piece() {
    Piece& piece = pieces_[piece_];
    Range part = whole_granules(longest_, piece.granule);
    const bool small =
        static_cast<double>(part.bytes()) < least_part * static_cast<double>(piece.range.bytes());
    if (piece.refused || small) part = {};
    rebind(piece, wanted_in(piece, part));
}

/// The runs of a part of the piece to the nodes where they lie. A page whose node is not told (it is armed)
/// is where it was; where none is told, they are taken to lie where the piece before ends.
std::vector<ObservedMemory::Bound> ObservedMemory::wanted_in(const Piece& piece, Range part) const {
    std::vector<Bound> wanted;
    if (part.empty()) return wanted;
    const Address base = piece.range.begin;
    const std::size_t first = (part.begin - base) / block_;
    const std::size_t end = (part.end - base + block_ - 1) / block_;
    std::vector<int> homes(homes_.begin() + static_cast<std::ptrdiff_t>(first),
                           homes_.begin() + static_cast<std::ptrdiff_t>(end));
    auto bound = piece.bound.begin();
    for (std::size_t n = 0; n < homes.size(); ++n) {
        const auto page = reinterpret_cast<Address>(probed_[first + n]);
        while (bound != piece.bound.end() && bound->range.end <= page)
            ++bound;
        if (homes[n] >= 0 && homes[n] < max_nodes) continue;
        homes[n] = bound != piece.bound.end() && bound->range.contains(page) ? bound->node : -1;
    }
    if (std::all_of(homes.begin(), homes.end(), [](int home) { return home < 0; }))
        homes.front() = piece_ > 0 && !pieces_[piece_ - 1].bound.empty()
                            ? pieces_[piece_ - 1].bound.back().node
                            : first_target_;
    const std::size_t most = std::max<std::size_t>(1, most_mappings / pieces_.size());
    for (const HomeRun& run : runs_by_home(homes, most)) {
        const Range range{std::max(part.begin, base + (first + run.first) * block_),
                          std::min(part.end, base + (first + run.end) * block_)};
        if (!short_of_memory_.has(run.node)) wanted.push_back({range, run.node});
    }
    return wanted;
}

void ObservedMemory::rebind(Piece& piece, std::vector<Bound> wanted) {
    for (const Bound& old : piece.bound)
        each_left(
            old.range, wanted, [](const Bound&) { return true; }, [&](Range left) { gone_.push_back(left); });
    for (const Bound& next : wanted)
        each_left(
            next.range, piece.bound, [&](const Bound& old) { return old.node == next.node; },
            [&](Range left) { wishes_.push_back({piece_, {left, next.node}}); });
    piece.bound = std::move(wanted);
}

void ObservedMemory::bind_wishes() {
    if (wishes_.empty()) return;
    std::sort(wishes_.begin(), wishes_.end(),
              [](const Wish& a, const Wish& b) { return a.bound.range.begin < b.bound.range.begin; });
    std::vector<PolicyKeeper::Request> requests;
    std::vector<std::size_t> request_of;
    for (const auto& [_, wished] : wishes_) {
        const bool goes_on = !requests.empty() && requests.back().range.end == wished.range.begin &&
                             requests.back().policy == policy_of(wished.node);
        if (goes_on)
            requests.back().range.end = wished.range.end;
        else
            requests.push_back({wished.range, policy_of(wished.node)});
        request_of.push_back(requests.size() - 1);
    }
    const PolicyKeeper::Outcome outcome = keeper_.set(PolicyKeeper::Layer::observed, requests);
    for (std::size_t i = 0; i < wishes_.size(); ++i) {
        Piece& piece = pieces_[wishes_[i].piece];
        if (requests[request_of[i]].error == 0) continue;
        piece.refused = true;
        let_go(piece);
    }
    wishes_.clear();
    clear_gone();
    if (outcome.error)
        reason_ = std::to_string(outcome.failed) + " of " + std::to_string(requests.size()) +
                  " ranges cannot be observed: " + std::strerror(outcome.error);
}

void ObservedMemory::clear_gone() {
    if (gone_.empty()) return;
    std::sort(gone_.begin(), gone_.end(), [](Range a, Range b) { return a.begin < b.begin; });
    const PolicyKeeper::Outcome outcome = keeper_.clear(PolicyKeeper::Layer::observed, gone_);
    gone_.clear();
    if (outcome.error)
        reason_ = std::string("a memory policy could not be given back: ") + std::strerror(outcome.error);
}

} // namespace homing
