// Locality queues (M. Wittmann and G. Hager: Optimizing ccNUMA locality for task-parallel execution under
// OpenMP and TBB on multicore-based systems, 2010, section 2.2): a queue a locality domain. A task does not
// know its block beforehand; it takes the oldest one of the domain where it happens to run, and only where
// there is none one of another domain. So the runtime goes on balancing the load, and data stays where it is
// used.
//
//     homing::LocalityQueues<Block> queues;
//     for (const Block& block : blocks) queues.put(block, block.first, block.bytes); // home looked up
//     #pragma omp parallel
//     #pragma omp single
//     homing::run_omp_tasks(queues, [&](const Block& block) { sweep(block); });
//
// All blocks are queued before the first task is submitted: runtimes run tasks at once when some hundreds of
// them wait, and would starve the queues of domains whose blocks come later (section 2.1). Link with
// -lhoming, or bring Domains of your own.
#pragma once

#if __cplusplus <= 201703L
#error "homing/tasks.hpp needs C++20 (-std=c++20); homing/homing.h serves older C++ and C"
#elif !defined(__cpp_exceptions)
#error "homing/tasks.hpp needs exceptions (no -fno-exceptions); homing/homing.h has queues without them"
#else

#include "homing/homing.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace homing {

/// What a locality domain is: a NUMA node with CPUs, or the CPUs that share a last-level cache.
enum class By { node = HOMING_BY_NODE, cache = HOMING_BY_CACHE };

/// The domain of a block that has no home.
inline constexpr int anywhere = HOMING_ANYWHERE;

/// How many domains there are, and in which one the caller runs. The default asks the library about this
/// machine.
struct Domains {
    int count = 1;
    int (*here)(const void* context) = nullptr; ///< 0..count-1, or `anywhere`; must not throw
    const void* context = nullptr;
    bool are_nodes = true; ///< numbered as homing_domain_of() numbers the homes of memory
};

/// The domains of this machine (homing_domains).
inline Domains domains_of_machine(By by = By::node) {
    const auto here_by_node = [](const void*) { return homing_domain_here(HOMING_BY_NODE); };
    const auto here_by_cache = [](const void*) { return homing_domain_here(HOMING_BY_CACHE); };
    const bool nodes = by == By::node;
    return {homing_domains(static_cast<int>(by)), nodes ? +here_by_node : +here_by_cache, nullptr, nodes};
}

/// Locality at any price: no block is taken by a thread of another domain (run_...() and drain() see to what
/// is left).
inline constexpr std::size_t keep_all = std::numeric_limits<std::size_t>::max();

namespace detail {

/// A lock for a few instructions. Waiters give up the CPU soon: threads may outnumber CPUs, and a holder that
/// lost its CPU would be waited for in vain.
class BriefLock {
  public:
    void lock() noexcept {
        for (unsigned tries = 0; held_.exchange(true, std::memory_order_acquire);) {
            while (held_.load(std::memory_order_relaxed))
                if (++tries % 64 == 0) std::this_thread::yield();
        }
    }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> held_{false};
};

class Hold {
  public:
    explicit Hold(BriefLock& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~Hold() { lock_.unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

  private:
    BriefLock& lock_;
};

/// First in, first out, of any length. Producers and consumers lock different ends (Michael and Scott 1996,
/// with many blocks a link); what is there is told by two counts.
template <class Block> class Queue {
  public:
    Queue() = default;
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue() {
        while (take()) {
        }
        delete head_;
        delete spare_.load(std::memory_order_relaxed);
    }

    /// Strong guarantee: bad_alloc leaves the queue as it was.
    void put(Block&& block) {
        const Hold hold(back_);
        const std::size_t at = put_.load(std::memory_order_relaxed);
        if (at % length == 0) {
            Segment* next = spare_.exchange(nullptr, std::memory_order_acquire);
            if (!next) next = new Segment;
            next->next = nullptr;
            if (tail_)
                tail_->next = next;
            else
                head_ = next;
            tail_ = next;
        }
        ::new (tail_->place(at % length)) Block(std::move(block));
        put_.store(at + 1, std::memory_order_release);
    }

    std::optional<Block> take(std::size_t keep = 0, bool at_home = true) noexcept {
        std::optional<Block> block;
        if (waiting() <= keep) return block;
        const Hold hold(front_);
        const std::size_t at = taken_.load(std::memory_order_relaxed);
        const std::size_t there = put_.load(std::memory_order_acquire) - at;
        if (there <= keep) return block;
        if (at % length == 0 && at > 0) {
            Segment* used = head_;
            head_ = used->next;
            delete spare_.exchange(used, std::memory_order_acq_rel);
        }
        Block* place = std::launder(reinterpret_cast<Block*>(head_->place(at % length)));
        block.emplace(std::move(*place));
        place->~Block();
        taken_.store(at + 1, std::memory_order_release);
        std::atomic<std::uint64_t>& count = at_home ? at_home_ : elsewhere_;
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return block;
    }

    std::size_t waiting() const noexcept {
        const std::size_t taken = taken_.load(std::memory_order_acquire);
        const std::size_t put = put_.load(std::memory_order_acquire);
        return put > taken ? put - taken : 0;
    }
    /// How many blocks were ever put.
    std::size_t count() const noexcept { return put_.load(std::memory_order_acquire); }
    std::uint64_t taken_at_home() const noexcept { return at_home_.load(std::memory_order_relaxed); }
    std::uint64_t taken_elsewhere() const noexcept { return elsewhere_.load(std::memory_order_relaxed); }

  private:
    static constexpr std::size_t length = 256;
    struct Segment {
        alignas(Block) std::byte bytes[length * sizeof(Block)];
        Segment* next = nullptr;
        void* place(std::size_t at) noexcept { return bytes + at * sizeof(Block); }
    };

    // Ends that different threads write lie in different cache lines.
    alignas(64) BriefLock back_;
    Segment* tail_ = nullptr;
    std::atomic<std::size_t> put_{0};
    alignas(64) BriefLock front_;
    Segment* head_ = nullptr; ///< written by the first producer before put_ tells of the first block
    std::atomic<std::size_t> taken_{0};
    std::atomic<std::uint64_t> at_home_{0};
    std::atomic<std::uint64_t> elsewhere_{0};
    alignas(64) std::atomic<Segment*> spare_{nullptr};
};

} // namespace detail

/// Locality queues over blocks of any type that can be moved without throwing. Any thread may call any
/// function at any time, except that construction and destruction are one thread's.
///
/// After fork() from serial code the child may go on with them; where other threads were inside at that
/// moment, it must not.
template <class Block> class LocalityQueues {
    static_assert(std::is_nothrow_move_constructible_v<Block> && std::is_nothrow_destructible_v<Block>,
                  "a block must move without throwing; queue an index or a pointer instead");

  public:
    struct Options {
        Domains domains;
        std::string name; ///< for messages
        /// A thread of another domain takes a block only where more than so many wait. 0: balance before
        /// locality.
        std::size_t keep = 0;
    };

    LocalityQueues() : LocalityQueues(Options{domains_of_machine(), {}, 0}) {}
    explicit LocalityQueues(By by) : LocalityQueues(Options{domains_of_machine(by), {}, 0}) {}
    /// std::invalid_argument for less than one domain.
    explicit LocalityQueues(Options options)
        : domains_(options.domains), name_(std::move(options.name)), keep_(options.keep) {
        if (domains_.count < 1) throw std::invalid_argument("homing::LocalityQueues: less than one domain");
        queues_ = std::make_unique<detail::Queue<Block>[]>(static_cast<std::size_t>(domains_.count) + 1);
    }
    LocalityQueues(const LocalityQueues&) = delete;
    LocalityQueues& operator=(const LocalityQueues&) = delete;

    /// Blocks that still wait are work that will never be done: an error that says which, and the end of the
    /// program, as with a std::thread that was not joined. Not while an exception passes: then it is the
    /// error. discard() is how to give blocks up.
    ~LocalityQueues() {
        if (waiting() == 0) return;
        std::fprintf(stderr, "homing: %s\n", left_over().c_str());
        if (std::uncaught_exceptions() == exceptions_) std::terminate();
    }

    int domains() const noexcept { return domains_.count; }
    /// May put() look up where a block's memory is at home? Not where domains are caches.
    bool know_homes() const noexcept { return domains_.are_nodes; }
    const std::string& name() const noexcept { return name_; }

    /// Append a block to a domain's queue. std::out_of_range for a domain that is not there.
    void put(Block block, int domain) {
        if (domain < anywhere || domain >= domains_.count)
            throw std::out_of_range("homing::LocalityQueues" + quoted_name() + ": there is no domain " +
                                    std::to_string(domain) + ", only 0 to " +
                                    std::to_string(domains_.count - 1));
        queue(domain).put(std::move(block));
    }
    /// The same with the home of its memory (homing_domain_of). Memory without a home goes to the queue for
    /// all. std::invalid_argument where the domains are not NUMA nodes.
    void put(Block block, const void* start, std::size_t bytes) {
        if (!know_homes())
            throw std::invalid_argument("homing::LocalityQueues" + quoted_name() +
                                        ": memory is at home on nodes, and the domains are none");
        const int home = homing_domain_of(start, bytes);
        put(std::move(block), home < domains_.count ? home : anywhere);
    }

    /// The oldest block of the caller's domain, as it is now; else the oldest without a home; else the oldest
    /// of the fullest queue that has more than `keep`. Nothing: at one moment during the call there was no
    /// such block.
    std::optional<Block> take() noexcept { return take_beyond(keep_); }

    /// One task's share: take a block and work on it. Where as many tasks run as there are blocks, all blocks
    /// are worked on (but see drain). False: `keep` reserved those that wait. What `work` throws comes out;
    /// its block counts as done.
    template <class Work> bool run_one(Work&& work) {
        std::optional<Block> block = take();
        if (!block) {
            // This task's share is left to a task of the blocks' own domain, which runs one more.
            if (keep_ > 0) owed_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        work(*block);
        while (keep_ > 0 && claim_owed()) {
            block = take();
            if (!block) {
                owed_.fetch_add(1, std::memory_order_relaxed);
                break;
            }
            work(*block);
        }
        return true;
    }

    /// After all tasks: work on what is left because `keep` reserved it for threads that did not come.
    /// Returns how many blocks that were.
    template <class Work> std::size_t drain(Work&& work) {
        std::size_t count = 0;
        while (std::optional<Block> block = take_beyond(0)) {
            ++count;
            work(*block);
        }
        owed_.store(0, std::memory_order_relaxed);
        return count;
    }

    /// Give all blocks up; returns how many there were.
    std::size_t discard() noexcept {
        std::size_t count = 0;
        while (take_beyond(0))
            ++count;
        owed_.store(0, std::memory_order_relaxed);
        return count;
    }

    /// Blocks that wait: in one domain's queue, or in all.
    std::size_t waiting(int domain) const noexcept {
        return domain < anywhere || domain >= domains_.count ? 0 : queue(domain).waiting();
    }
    std::size_t waiting() const noexcept {
        std::size_t sum = 0;
        for (int domain = anywhere; domain < domains_.count; ++domain)
            sum += queue(domain).waiting();
        return sum;
    }

    /// Blocks with a home that were taken by threads of their domain, and by others, so far.
    std::uint64_t taken_at_home() const noexcept { return sum(&detail::Queue<Block>::taken_at_home); }
    std::uint64_t taken_elsewhere() const noexcept { return sum(&detail::Queue<Block>::taken_elsewhere); }

    /// "queues "name" destroyed with blocks that nobody took: 3 of domain 1, ..." Empty: no block waits.
    std::string left_over() const {
        std::string which;
        for (int domain = anywhere; domain < domains_.count; ++domain) {
            const std::size_t count = queue(domain).waiting();
            if (count == 0) continue;
            which += (which.empty() ? "" : ", ") + std::to_string(count) +
                     (domain == anywhere ? " without a home" : " of domain " + std::to_string(domain));
        }
        return which.empty() ? which
                             : "locality queues" + quoted_name() + ": blocks that nobody took: " + which;
    }

  private:
    detail::Queue<Block>& queue(int domain) const noexcept {
        return queues_[static_cast<std::size_t>(domain) + 1];
    }

    std::optional<Block> take_beyond(std::size_t keep) noexcept {
        const int here =
            domains_.here ? domains_.here(domains_.context) : 0; // threads may have moved since the last time
        if (here >= 0 && here < domains_.count)
            if (std::optional<Block> block = queue(here).take()) return block;
        if (std::optional<Block> block = queue(anywhere).take()) return block;
        while (true) {
            const std::size_t before = puts();
            int fullest = anywhere;
            std::size_t most = keep;
            for (int domain = 0; domain < domains_.count; ++domain)
                if (const std::size_t waits = queue(domain).waiting(); waits > most) {
                    most = waits;
                    fullest = domain;
                }
            if (fullest != anywhere) {
                if (std::optional<Block> block =
                        queue(fullest).take(fullest == here ? 0 : keep, fullest == here))
                    return block;
            } else if (puts() == before) {
                return std::nullopt;
            } else if (std::optional<Block> block = queue(anywhere).take()) {
                return block;
            }
        }
    }

    std::size_t puts() const noexcept {
        std::size_t sum = 0;
        for (int domain = anywhere; domain < domains_.count; ++domain)
            sum += queue(domain).count();
        return sum;
    }

    bool claim_owed() noexcept {
        std::size_t owed = owed_.load(std::memory_order_relaxed);
        while (owed > 0)
            if (owed_.compare_exchange_weak(owed, owed - 1, std::memory_order_relaxed)) return true;
        return false;
    }

    std::uint64_t sum(std::uint64_t (detail::Queue<Block>::*count)() const noexcept) const noexcept {
        std::uint64_t all = 0;
        for (int domain = 0; domain < domains_.count; ++domain)
            all += (queue(domain).*count)();
        return all;
    }

    std::string quoted_name() const { return name_.empty() ? name_ : " \"" + name_ + "\""; }

    Domains domains_;
    std::string name_;
    std::size_t keep_;
    int exceptions_ = std::uncaught_exceptions();
    std::unique_ptr<detail::Queue<Block>[]> queues_; ///< the first one: blocks without a home
    std::atomic<std::size_t> owed_{0};               ///< used with `keep` only
};

namespace detail {

/// The first exception of many tasks: none may leave the task that it comes from.
class FirstException {
  public:
    template <class Work> void guard(Work&& work) noexcept {
        try {
            work();
        } catch (...) {
            const Hold hold(lock_);
            if (!first_) first_ = std::current_exception();
        }
    }
    /// One thread, after all tasks.
    void rethrow() const {
        if (first_) std::rethrow_exception(first_);
    }

  private:
    BriefLock lock_;
    std::exception_ptr first_;
};

} // namespace detail

#ifdef _OPENMP
/// All blocks that wait, as one OpenMP task each (section 2.2). To be called by one thread of a parallel
/// region (in `single`, or in a task); returns when all have run. Rethrows the first exception that `work`
/// threw; the other blocks are worked on all the same. `work(block)` is called by several threads at once; it
/// may put blocks and call this function again.
template <class Block, class Work> void run_omp_tasks(LocalityQueues<Block>& queues, Work&& work) {
    detail::FirstException first;
    LocalityQueues<Block>* const blocks = &queues;
    auto* const body = &work;
    detail::FirstException* const error = &first;
    const std::size_t count = queues.waiting();
#pragma omp taskgroup
    for (std::size_t i = 0; i < count; ++i) {
#pragma omp task default(none) firstprivate(blocks, body, error)
        error->guard([&] { blocks->run_one(*body); });
    }
    while (queues.waiting() > 0)
        first.guard([&] { queues.drain(work); });
    first.rethrow();
}

/// The same by a taskloop: its tasks run `grain` blocks each, at least one.
template <class Block, class Work>
void run_omp_taskloop(LocalityQueues<Block>& queues, Work&& work, std::size_t grain = 1) {
    detail::FirstException first;
    LocalityQueues<Block>* const blocks = &queues;
    auto* const body = &work;
    detail::FirstException* const error = &first;
    const std::size_t count = queues.waiting();
    if (grain == 0) grain = 1; // by 0 the compilers' code divides
#pragma omp taskloop grainsize(grain) default(none) firstprivate(blocks, body, error) shared(count)
    for (std::size_t i = 0; i < count; ++i)
        error->guard([&] { blocks->run_one(*body); });
    while (queues.waiting() > 0)
        first.guard([&] { queues.drain(work); });
    first.rethrow();
}
#endif

/// A body for oneTBB's algorithms (section 3.2): as many blocks as it is handed indices, from the queues.
/// With all blocks queued before:
///
///     tbb::parallel_for(tbb::blocked_range<std::size_t>(0, queues.waiting()), homing::QueueBody(queues,
///     work)); tbb::parallel_for_each(blocks.begin(), blocks.end(), homing::QueueBody(queues, work));
///
/// Ranges of one to three dimensions, single indices and single items are understood. After the loop, drain()
/// where `keep` was set. `work` is shared by all copies of the body and must outlive them.
template <class Block, class Work> class QueueBody {
  public:
    QueueBody(LocalityQueues<Block>& queues, const Work& work) noexcept : queues_(&queues), work_(&work) {}

    template <class Range> void operator()(const Range& range) const {
        for (std::size_t left = size(range); left > 0; --left)
            queues_->run_one(*work_);
    }

  private:
    template <class Range> static std::size_t size(const Range& range) noexcept {
        if constexpr (requires { range.pages().size() * range.rows().size() * range.cols().size(); })
            return range.pages().size() * range.rows().size() * range.cols().size();
        else if constexpr (requires { range.rows().size() * range.cols().size(); })
            return range.rows().size() * range.cols().size();
        else if constexpr (requires { range.is_divisible(); })
            return range.size();
        else
            return 1;
    }
    LocalityQueues<Block>* queues_;
    const Work* work_;
};

} // namespace homing

#endif
