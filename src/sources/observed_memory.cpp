#include "sources/observed_memory.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace homing {
namespace {

constexpr std::size_t pieces_of_range = 64; ///< at most, so that a range gets few mappings
constexpr std::size_t chunk_pages = 512;    ///< looked at in one go
/// Chunks looked at when the set of watched ranges has changed: 256 MiB of base pages. The rest comes in
/// turn.
constexpr std::size_t chunks_at_once = 128;
/// Time for looking, of all time; so much of it may be saved up, in seconds.
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

/// Whole granules, so that no huge page is cut by a policy's border.
Range whole_granules(Range range, std::size_t granule) noexcept {
    const Range pages = whole_pages(range);
    if (!std::has_single_bit(granule) || granule <= page_bytes()) return pages;
    const Range inner{align_up(pages.begin, granule), align_down(pages.end, granule)};
    return inner.empty() ? Range{pages.begin, pages.begin} : inner;
}

Range longer(Range a, Range b) noexcept { return a.bytes() >= b.bytes() ? a : b; }
bool within(Range inner, Range outer) noexcept {
    return outer.begin <= inner.begin && inner.end <= outer.end;
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

/// Pieces of 2 MiB, or larger ones so that they are not too many; borders inside the range are those of huge
/// pages.
void ObservedMemory::cut(const WatchedRange& watched) {
    const Range range = whole_granules(watched.range, watched.granule);
    const std::size_t step =
        std::max(huge_page_bytes, align_up(range.bytes() / pieces_of_range + 1, huge_page_bytes));
    for (Address begin = range.begin; begin < range.end;) {
        const Address end =
            std::min(range.end, align_up(begin + 1, huge_page_bytes) + step - huge_page_bytes);
        pieces_.push_back({.range = {begin, end}, .granule = watched.granule});
        chunks_ += ((end - begin) / page_bytes() + chunk_pages - 1) / chunk_pages;
        begin = end;
    }
}

/// What was bound and lies in one of the new pieces stays so; the rest is given back.
void ObservedMemory::keep_bound(std::span<const Piece> before) {
    auto piece = pieces_.begin();
    for (const Piece& old : before) {
        Address at = old.bound.begin;
        while (piece != pieces_.end() && piece->range.end <= at)
            ++piece;
        for (auto one = piece; one != pieces_.end() && one->range.begin < old.bound.end; ++one) {
            const Range kept{std::max(at, one->range.begin), std::min(old.bound.end, one->range.end)};
            if (kept.empty() || !one->bound.empty()) continue;
            one->bound = kept;
            one->node = old.node;
            if (at < kept.begin) gone_.push_back({at, kept.begin});
            at = kept.end;
        }
        if (at < old.bound.end) gone_.push_back({at, old.bound.end});
    }
}

bool ObservedMemory::assign(std::span<const WatchedRange> ranges) {
    const std::vector<Piece> before = std::move(pieces_);
    pieces_.clear();
    chunks_ = 0;
    for (const WatchedRange& watched : ranges)
        cut(watched);
    keep_bound(before);
    piece_ = at_ = 0;
    looked_ = clock_seconds();
    allowance_ = next_look_at_memory_ = 0;
    notice_fork();
    look_at_free_memory();
    for (std::size_t left = std::min(chunks_, chunks_at_once); left > 0; --left)
        look_at_chunk();
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
    notice_fork();
    if (begin >= next_look_at_memory_) look_at_free_memory();
    double now = 0;
    std::size_t left = chunks_;
    do {
        look_at_chunk();
        now = clock_seconds();
    } while (--left > 0 && now - begin < allowance_);
    populated_.close();
    clear_gone();
    bind_wishes();
    allowance_ = std::max(0.0, allowance_ - (now - begin));
}

void ObservedMemory::release() {
    for (Piece& piece : pieces_)
        let_go(piece);
    clear_gone();
    pieces_.clear();
}

/// The keeper took our policy off everything before the fork.
void ObservedMemory::notice_fork() {
    const std::uint64_t forks = keeper_.forks();
    if (forks == forks_) return;
    forks_ = forks;
    for (Piece& piece : pieces_)
        let_go(piece);
    piece_ = at_ = 0;
}

void ObservedMemory::let_go(Piece& piece) {
    if (!piece.bound.empty()) gone_.push_back(piece.bound);
    piece.bound = {};
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
            if (is_short && piece.node == node.index) let_go(piece);
    }
    const double now = clock_seconds();
    next_look_at_memory_ = now + (now - begin) / share_of_time;
}

/// Ask some pages for their nodes. Memory of which nearly nothing exists is passed over: there may be
/// terabytes of it.
void ObservedMemory::begin_piece() {
    const Range range = pieces_[piece_].range;
    const std::size_t pages = range.bytes() / page_bytes();
    probe_count_ = std::min(pages, probes);
    for (std::size_t n = 0; n < probe_count_; ++n) // in the middle of equal parts
        probed_[n] =
            reinterpret_cast<void*>(range.begin + (2 * n + 1) * pages / (2 * probe_count_) * page_bytes());
    homes_.fill(-EFAULT);
    const std::span<int> homes(homes_.data(), probe_count_);
    // Where it cannot be asked, the pages themselves are looked at.
    if (kernel_.query({probed_.data(), probe_count_}, homes) != 0)
        std::fill(homes.begin(), homes.end(), -ENOENT);
    // ENOENT is a page that is armed for a hint fault, on kernels up to 6.5.
    const auto perhaps =
        std::count_if(homes.begin(), homes.end(), [](int home) { return home >= 0 || home == -ENOENT; });
    at_ = static_cast<double>(perhaps) < least_part * static_cast<double>(probe_count_) ? range.end
                                                                                        : range.begin;
    if (at_ == range.end) let_go(pieces_[piece_]);
    run_ = longest_ = {at_, at_};
}

void ObservedMemory::look_at_chunk() {
    if (at_ == 0) begin_piece();
    Piece& piece = pieces_[piece_];
    const Address end = std::min(piece.range.end, at_ + chunk_pages * page_bytes());
    while (at_ < end) {
        const Range found = populated_.first({at_, end}, forks_ > 0).value_or(Range{end, end});
        if (found.begin > at_) { // from at_ to there nothing is populated
            if (piece.bound.overlaps({at_, found.begin})) let_go(piece);
            longest_ = longer(longest_, run_);
            run_ = {found.begin, found.begin};
        }
        run_.end = at_ = std::max(found.end, found.begin);
    }
    if (at_ == piece.range.end) {
        longest_ = longer(longest_, run_);
        end_piece();
        next_piece();
    }
}

void ObservedMemory::next_piece() noexcept {
    piece_ = (piece_ + 1) % pieces_.size();
    at_ = 0;
}

/// The whole piece was looked at: what of it should be bound, and where?
void ObservedMemory::end_piece() {
    Piece& piece = pieces_[piece_];
    Range part = whole_granules(longest_, piece.granule);
    if (static_cast<double>(part.bytes()) < least_part * static_cast<double>(piece.range.bytes())) part = {};
    const int node = node_for(piece, part);
    if (piece.refused || part.empty() || node < 0 || short_of_memory_.has(node)) {
        let_go(piece);
        return;
    }
    if (part.begin == piece.bound.begin && part.end == piece.bound.end && node == piece.node) return;
    if (!within(piece.bound, part)) let_go(piece);
    wishes_.push_back({piece_, part, node});
}

/// The node where most of the part lies; one that it is bound to already stays until another has twice as
/// much. Where all is armed and not told, that of the piece before. -1: not known.
int ObservedMemory::node_for(const Piece& piece, Range part) const noexcept {
    std::array<int, max_nodes> held{};
    for (std::size_t n = 0; n < probe_count_; ++n)
        if (homes_[n] >= 0 && homes_[n] < max_nodes && part.contains(reinterpret_cast<Address>(probed_[n])))
            ++held[static_cast<std::size_t>(homes_[n])];
    const auto most = std::max_element(held.begin(), held.end());
    if (*most == 0) {
        if (piece.node >= 0) return piece.node;
        return piece_ > 0 && pieces_[piece_ - 1].node >= 0 ? pieces_[piece_ - 1].node : first_target_;
    }
    const bool stays =
        !piece.bound.empty() && piece.node >= 0 && 2 * held[static_cast<std::size_t>(piece.node)] >= *most;
    return stays ? piece.node : static_cast<int>(most - held.begin());
}

void ObservedMemory::bind_wishes() {
    if (wishes_.empty()) return;
    std::sort(wishes_.begin(), wishes_.end(),
              [](const Wish& a, const Wish& b) { return a.range.begin < b.range.begin; });
    std::vector<PolicyKeeper::Request> requests;
    std::vector<std::size_t> request_of;
    for (const Wish& wish : wishes_) {
        const bool goes_on = !requests.empty() && requests.back().range.end == wish.range.begin &&
                             requests.back().policy == policy_of(wish.node);
        if (goes_on)
            requests.back().range.end = wish.range.end;
        else
            requests.push_back({wish.range, policy_of(wish.node)});
        request_of.push_back(requests.size() - 1);
    }
    const PolicyKeeper::Outcome outcome = keeper_.set(PolicyKeeper::Layer::observed, requests);
    for (std::size_t i = 0; i < wishes_.size(); ++i) {
        Piece& piece = pieces_[wishes_[i].piece];
        piece.refused = requests[request_of[i]].error != 0;
        if (piece.refused) continue;
        piece.bound = wishes_[i].range;
        piece.node = wishes_[i].node;
    }
    wishes_.clear();
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
