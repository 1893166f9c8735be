// The real system calls, on whatever machine this is: one node is enough for all but the last step of a move.
#include "kernel/kernel.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <random>
#include <rapidcheck/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>

namespace homing::kernel_linux_tests {
namespace {

struct Memory {
    explicit Memory(std::size_t count)
        : pages(count),
          address(static_cast<char*>(::mmap(nullptr, count * page_bytes(), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        ::madvise(address, bytes(), MADV_NOHUGEPAGE);
    }
    ~Memory() { ::munmap(address, bytes()); }
    std::size_t bytes() const { return pages * page_bytes(); }
    Range range() const {
        return {reinterpret_cast<Address>(address), reinterpret_cast<Address>(address) + bytes()};
    }
    char* page(std::size_t index) const { return address + index * page_bytes(); }
    std::vector<void*> list() const {
        std::vector<void*> all;
        for (std::size_t i = 0; i < pages; ++i)
            all.push_back(page(i));
        return all;
    }
    std::size_t pages;
    char* address;
};

/// A page that is not populated: -ENOENT, up to 6.5 -EFAULT.
bool is_absent(int state) { return state == -ENOENT || state == -EFAULT; }

bool may_move_pages() {
    Memory memory(1);
    std::vector<int> node(1);
    return linux_kernel().query(memory.list(), node) == 0;
}

TEST(LinuxKernel, TellsWhichRangesHoldPages) {
    Memory memory(64);
    const auto pages = [&](std::size_t first, std::size_t end) {
        return Range{reinterpret_cast<Address>(memory.page(first)),
                     reinterpret_cast<Address>(memory.page(end))};
    };
    memory.page(17)[5] = 1;
    memory.page(40)[0] = 1;
    EXPECT_EQ(*static_cast<volatile char*>(memory.page(50)), 0); // the zero page: on no node
    const Range ranges[] = {pages(0, 17), pages(17, 18), pages(10, 64), pages(18, 40), pages(41, 64)};
    std::uint8_t found[] = {9, 9, 9, 9, 9};
    const int error = linux_kernel().populated(ranges, found);
    if (error) GTEST_SKIP() << "the kernel does not tell: " << error;
    EXPECT_EQ(std::vector<int>(std::begin(found), std::end(found)), (std::vector<int>{0, 1, 1, 0, 0}));
}

/// Cells of any sizes, with gaps or without, of memory that is populated in runs of any lengths.
RC_GTEST_PROP(LinuxKernelProperty, RangesHoldPagesWhereOneIsPopulated, ()) {
    constexpr std::size_t pages = 3000;
    Memory memory(pages);
    std::vector<bool> populated(pages, false);
    for (std::size_t page = 0; page < pages;) {
        const auto run = *rc::gen::inRange<std::size_t>(1, *rc::gen::element<std::size_t>(4, 40, 1500));
        const bool there = *rc::gen::arbitrary<bool>();
        for (const std::size_t end = std::min(pages, page + run); page < end; ++page)
            if (there) memory.page(page)[0] = 1, populated[page] = true;
    }
    const auto most = *rc::gen::element<std::size_t>(2, 10, 900);
    std::vector<Range> ranges;
    std::vector<int> expected;
    for (std::size_t page = 0; page < pages;) {
        const std::size_t end = std::min(pages, page + *rc::gen::inRange<std::size_t>(1, most));
        ranges.push_back(
            {reinterpret_cast<Address>(memory.page(page)), reinterpret_cast<Address>(memory.page(end))});
        const auto first = populated.begin() + static_cast<std::ptrdiff_t>(page);
        const auto last = populated.begin() + static_cast<std::ptrdiff_t>(end);
        expected.push_back(std::find(first, last, true) != last);
        page = end + (*rc::gen::inRange(0, 4) == 0);
    }
    std::vector<std::uint8_t> found(ranges.size(), 9);
    if (linux_kernel().populated(ranges, found) != 0) return;
    RC_ASSERT(std::vector<int>(found.begin(), found.end()) == expected);
}

TEST(LinuxKernel, QueryTellsNodesAndWhyThereIsNone) {
    if (!may_move_pages()) GTEST_SKIP() << "move_pages is not permitted here";
    Memory memory(4);
    memory.page(0)[0] = 1;
    volatile char read = memory.page(1)[0]; // the zero page
    (void)read;
    NodeSet allowed;
    ASSERT_EQ(linux_kernel().allowed_nodes(allowed), 0);
    std::vector<int> nodes(4);
    errno = 77;
    ASSERT_EQ(linux_kernel().query(memory.list(), nodes), 0);
    EXPECT_EQ(errno, 77);
    EXPECT_TRUE(allowed.has(nodes[0])) << nodes[0];
    EXPECT_EQ(nodes[1], -EFAULT);
    EXPECT_TRUE(is_absent(nodes[2])) << nodes[2];
    EXPECT_EQ(linux_kernel().query({}, {}), 0);
}

TEST(LinuxKernel, RevealingTouchesOnlyWhatExistsAndIsNoSignal) {
    Memory memory(200); // more than one batch
    for (std::size_t i = 0; i < memory.pages; i += 2)
        memory.page(i)[0] = 1;
    ::mprotect(memory.page(4), page_bytes(), PROT_NONE);
    MemoryPolicy before, after;
    ASSERT_EQ(linux_kernel().task_policy(before), 0);
    ASSERT_EQ(linux_kernel().reveal(memory.list()), 0);
    ASSERT_EQ(linux_kernel().task_policy(after), 0);
    EXPECT_EQ(after, before);
    std::vector<unsigned char> resident(memory.pages);
    ASSERT_EQ(::mincore(memory.address, memory.bytes(), resident.data()), 0);
    for (std::size_t i = 0; i < memory.pages; ++i)
        EXPECT_EQ(resident[i] & 1, i % 2 == 0) << i;
    EXPECT_EQ(linux_kernel().reveal({}), 0);
}

TEST(LinuxKernel, MovesToWhereItMay) {
    if (!may_move_pages()) GTEST_SKIP() << "move_pages is not permitted here";
    Memory memory(8);
    std::memset(memory.address, 1, memory.bytes() / 2);
    NodeSet allowed;
    ASSERT_EQ(linux_kernel().allowed_nodes(allowed), 0);
    int last = 0;
    for (int node = 0; node < max_nodes; ++node) {
        if (allowed.has(node)) last = node;
    }
    std::vector<int> targets(8, last);
    std::vector<int> status(8);
    ASSERT_EQ(linux_kernel().move(memory.list(), targets, status), 0);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(status[i], last);
    for (std::size_t i = 4; i < 8; ++i)
        EXPECT_TRUE(is_absent(status[i])) << status[i];
    targets[3] = 63;
    if (!allowed.has(63)) {
        const int error = linux_kernel().move(memory.list(), targets, status);
        EXPECT_TRUE(error == ENODEV || error == EACCES) << error;
        EXPECT_EQ(status[0], last) << "what was done before the fault is told";
    }
}

/// On machines with several nodes, such as the lab's guest.
TEST(LinuxKernel, APageThatCannotMoveHasAReasonAndTheRestCanBeAskedAgain) {
    NodeSet allowed;
    ASSERT_EQ(linux_kernel().allowed_nodes(allowed), 0);
    if (allowed.count() < 2 || !may_move_pages()) GTEST_SKIP() << "needs two nodes";
    const int first = allowed.first();
    const int second = NodeSet{allowed.bits & ~(1ull << first)}.first();

    Memory memory(12);
    ASSERT_EQ(linux_kernel().bind(memory.range(), {MPOL_PREFERRED, NodeSet{1ull << first}}), 0);
    std::memset(memory.address, 1, memory.bytes());
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    iovec pinned{memory.page(4), 1}; // the pipe holds a reference to the page
    ASSERT_EQ(::vmsplice(pipe[1], &pinned, 1, 0), 1);

    // Two runs of one target, the first with the pinned page, then a page that is not at its target.
    std::vector<int> targets(12, second);
    std::fill(targets.begin() + 8, targets.end(), first);
    targets[11] = second;
    std::vector<int> status(12);
    ASSERT_EQ(linux_kernel().move(memory.list(), targets, status), 0);
    EXPECT_EQ(status[4], -EBUSY);
    for (const std::size_t page : {0, 1, 2, 3, 5, 6, 7})
        EXPECT_EQ(status[page], second) << page;
    for (const std::size_t page : {8, 9, 10})
        EXPECT_EQ(status[page], first) << page;
    EXPECT_TRUE(status[11] == -EAGAIN || status[11] == second) << status[11];

    const std::vector<void*> rest{memory.page(11)};
    std::vector<int> rest_status(1);
    ASSERT_EQ(linux_kernel().move(rest, std::vector<int>{second}, rest_status), 0);
    EXPECT_EQ(rest_status[0], second);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST(LinuxKernel, PoliciesComeBackAsTheyWereSet) {
    Memory memory(16);
    NodeSet allowed;
    ASSERT_EQ(linux_kernel().allowed_nodes(allowed), 0);
    ASSERT_GT(allowed.count(), 0);
    MemoryPolicy found{77, NodeSet{77}};
    ASSERT_EQ(linux_kernel().policy_at(memory.range().begin, found), 0);
    EXPECT_EQ(found, MemoryPolicy{});
    for (const int mode : {int{MPOL_BIND}, int{MPOL_INTERLEAVE}, MPOL_BIND | MPOL_F_STATIC_NODES}) {
        const MemoryPolicy wanted{mode, allowed};
        ASSERT_EQ(linux_kernel().bind(memory.range(), wanted), 0) << mode;
        ASSERT_EQ(linux_kernel().policy_at(memory.range().begin, found), 0);
        EXPECT_EQ(found, wanted);
    }
    ASSERT_EQ(linux_kernel().bind(memory.range(), MemoryPolicy{}), 0);
    ASSERT_EQ(linux_kernel().policy_at(memory.range().begin, found), 0);
    EXPECT_EQ(found, MemoryPolicy{});
    EXPECT_EQ(linux_kernel().bind(memory.range(), {MPOL_BIND, NodeSet{}}), EINVAL);
    EXPECT_EQ(linux_kernel().policy_at(0, found), EFAULT);
    EXPECT_EQ(linux_kernel().task_policy(found), 0);
    EXPECT_EQ(found.mode, MPOL_DEFAULT);
}

sigjmp_buf after_fault;

TEST(LinuxKernel, ProtectTakesAndGivesBackAccess) {
    Memory memory(2);
    memory.page(0)[0] = 5;
    struct sigaction action{}, before{};
    action.sa_handler = [](int) { ::siglongjmp(after_fault, 1); };
    ::sigaction(SIGSEGV, &action, &before);
    ASSERT_EQ(linux_kernel().protect(memory.range(), Access::none), 0);
    volatile bool faulted = false;
    if (sigsetjmp(after_fault, 1) == 0) {
        volatile char read = memory.page(0)[0];
        (void)read;
    } else {
        faulted = true;
    }
    ::sigaction(SIGSEGV, &before, nullptr);
    EXPECT_TRUE(faulted);
    ASSERT_EQ(linux_kernel().protect(memory.range(), Access::read_write), 0);
    EXPECT_EQ(memory.page(0)[0], 5);
    EXPECT_EQ(linux_kernel().protect({memory.range().begin + 1, memory.range().end}, Access::none), EINVAL);
}

TEST(LinuxKernel, CountsTheMappingsOfTheProcess) {
    const Kernel::Mappings before = linux_kernel().mappings();
    EXPECT_GT(before.now, 10u);
    EXPECT_LT(before.now, before.most);
    constexpr std::size_t pages = 201; // every other one is a mapping of its own
    void* memory = ::mmap(nullptr, pages * page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (std::size_t i = 1; i < pages; i += 2)
        ASSERT_EQ(::mprotect(static_cast<char*>(memory) + i * page_bytes(), page_bytes(), PROT_NONE), 0);
    const std::size_t made = linux_kernel().mappings().now - before.now;
    EXPECT_GE(made, pages - 2);
    EXPECT_LE(made, pages + 2);
    ::munmap(memory, pages * page_bytes());
}

TEST(LinuxKernel, KnowsNodesOfCpusAndTheirMemory) {
    const int node = linux_kernel().current_node();
    EXPECT_GE(node, 0);
    EXPECT_GT(linux_kernel().free_bytes(node), 0u);
    EXPECT_EQ(linux_kernel().free_bytes(-1), 0u);
    EXPECT_EQ(linux_kernel().free_bytes(64), 0u);
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(linux_kernel().current_node(), linux_kernel().node_of_cpu(cpu));
    }
    ::sched_setaffinity(0, sizeof set, &set);
    EXPECT_EQ(linux_kernel().node_of_cpu(-1), -1);
    EXPECT_EQ(linux_kernel().node_of_cpu(1'000'000), -1);
}

/// The addresses of all samples in a ring.
std::vector<std::uint64_t> sampled_addresses(const SamplerRing& ring) {
    auto* control = static_cast<perf_event_mmap_page*>(ring.map);
    const auto* data = static_cast<const char*>(ring.map) + page_bytes();
    const std::size_t bytes = ring.bytes - page_bytes();
    const std::uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    std::vector<std::uint64_t> addresses;
    for (std::uint64_t tail = 0; tail < head;) {
        struct Sample {
            perf_event_header header;
            std::uint64_t instruction;
            std::uint32_t process, thread;
            std::uint64_t time, address;
            std::uint32_t cpu, reserved;
        } sample;
        perf_event_header header;
        std::memcpy(&header, data + tail % bytes, sizeof header);
        EXPECT_GE(header.size, sizeof header);
        if (header.type == PERF_RECORD_SAMPLE) {
            EXPECT_EQ(header.size, sizeof sample);
            std::memcpy(&sample, data + tail % bytes, sizeof sample);
            EXPECT_EQ(sample.thread, static_cast<std::uint32_t>(::gettid()));
            EXPECT_NE(sample.instruction, 0u);
            addresses.push_back(sample.address);
        }
        tail += header.size;
    }
    return addresses;
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                                  std::filesystem::directory_iterator()));
}

TEST(LinuxKernel, ASamplerGoesOnAfterItsDescriptorIsClosed) {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    SamplerRing ring;
    const std::size_t before = open_descriptors();
    const int error = linux_kernel().open_sampler(event, 0, 16, ring);
    if (error) GTEST_SKIP() << "perf_event_open: " << std::strerror(error);
    EXPECT_EQ(open_descriptors(), before);
    Memory memory(50);
    for (std::size_t i = 0; i < 50; ++i)
        memory.page(i)[8] = 1;
    const auto addresses = sampled_addresses(ring);
    for (std::size_t i = 0; i < 50; ++i) {
        const auto expected = reinterpret_cast<std::uint64_t>(memory.page(i)) + 8;
        EXPECT_EQ(std::count(addresses.begin(), addresses.end(), expected), 1) << i;
    }
    // A child has no such mapping: it must not be there to be touched by mistake.
    const pid_t child = ::fork();
    if (child == 0) {
        unsigned char resident;
        ::_exit(::mincore(ring.map, page_bytes(), &resident) != 0 && errno == ENOMEM ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    linux_kernel().close_sampler(ring);
    EXPECT_EQ(ring.map, nullptr);
}

TEST(LinuxKernel, ASamplerInAGroupKeepsItsLeader) {
    SamplerEvent event;
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    event.with_leader = true;
    event.leader_config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    SamplerRing ring;
    const int error = linux_kernel().open_sampler(event, 0, 16, ring);
    if (error) GTEST_SKIP() << "perf_event_open: " << std::strerror(error);
    EXPECT_NE(ring.leader, nullptr);
    Memory memory(20);
    std::memset(memory.address, 1, memory.bytes());
    EXPECT_GE(sampled_addresses(ring).size(), 20u);
    linux_kernel().close_sampler(ring);
}

TEST(LinuxKernel, AnEventThatIsNotThereIsAnError) {
    SamplerEvent event;
    event.type = 0xffff;
    SamplerRing ring;
    EXPECT_NE(linux_kernel().open_sampler(event, 0, 16, ring), 0);
    EXPECT_EQ(ring.map, nullptr);
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_PAGE_FAULTS;
    EXPECT_NE(linux_kernel().open_sampler(event, 0, 3, ring), 0) << "3 pages are no power of two";
    EXPECT_EQ(ring.map, nullptr);
}

TEST(AssumedKernel, RemembersWherePagesWereMoved) {
    if (!may_move_pages()) GTEST_SKIP() << "move_pages is not permitted here";
    Kernel& kernel = assumed_kernel(4);
    EXPECT_EQ(&kernel, &assumed_kernel(4));
    Memory memory(1200);
    std::memset(memory.address, 1, memory.bytes() / 2);
    auto pages = memory.list();
    for (std::size_t i = 700; i < 800; ++i) // they get the one page of zeros, which stays where it is
        EXPECT_EQ(*static_cast<volatile char*>(pages[i]), 0);
    std::mt19937 random(1);
    std::shuffle(pages.begin() + 300, pages.begin() + 500, random); // in no order, too
    std::vector<int> nodes(pages.size());
    std::vector<int> targets;
    for (std::size_t i = 0; i < pages.size(); ++i)
        targets.push_back(static_cast<int>(i % 4));
    ASSERT_EQ(kernel.query(pages, nodes), 0);
    for (std::size_t i = 0; i < 600; ++i)
        ASSERT_EQ(nodes[i], 0);
    ASSERT_EQ(kernel.move(pages, targets, nodes), 0);
    for (std::size_t i = 0; i < 1200; ++i)
        ASSERT_TRUE(i < 600 ? nodes[i] == targets[i] : is_absent(nodes[i])) << i;
    ASSERT_EQ(kernel.query(pages, nodes), 0);
    for (std::size_t i = 0; i < 1200; ++i) {
        ASSERT_TRUE(i < 600 ? nodes[i] == targets[i] : is_absent(nodes[i]))
            << "only what is really there can be somewhere";
    }
    targets.assign(pages.size(), 0);
    ASSERT_EQ(kernel.move(pages, targets, nodes), 0);
    EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 0), 600);
    targets[5] = 4;
    EXPECT_EQ(kernel.move(pages, targets, nodes), ENODEV);
}

TEST(AssumedKernel, DividesTheCpus) {
    NodeSet nodes;
    ASSERT_EQ(assumed_kernel(3).allowed_nodes(nodes), 0);
    EXPECT_EQ(nodes, NodeSet{0b111});
    EXPECT_EQ(assumed_kernel(3).node_of_cpu(0), 0);
    int last = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        const int node = assumed_kernel(3).node_of_cpu(cpu);
        if (node < 0) continue;
        EXPECT_GE(node, last);
        EXPECT_LT(node, 3);
        last = node;
    }
    EXPECT_GE(assumed_kernel(3).current_node(), 0);
    EXPECT_LT(assumed_kernel(3).current_node(), 3);
    EXPECT_GT(assumed_kernel(3).free_bytes(2), 0u);
    EXPECT_EQ(assumed_kernel(3).bind({0x1000, 0x2000}, {MPOL_BIND, NodeSet{0b100}}), 0);
    EXPECT_EQ(assumed_kernel(3).bind({0x1000, 0x2000}, {MPOL_BIND, NodeSet{0b1000}}), EINVAL);
}

} // namespace
} // namespace homing::kernel_linux_tests
