#include "kernel/own_pages.hpp"

#include "base/arena.hpp"
#include "failing.hpp"
#include "kernel/simulated.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <ucontext.h>

namespace homing::own_pages_tests {
namespace {

bool hold(const std::vector<Range>& ranges, const void* address) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [address](Range range) { return range.contains(reinterpret_cast<Address>(address)); });
}

int written = 1;
const char constant[] = "constant";

TEST(OwnPages, AreTheLibrarysDataAndItsMemory) {
    void* block = own_arena.allocate(100);
    const std::vector<Range> ranges = own_ranges();
    EXPECT_TRUE(hold(ranges, &written));
    EXPECT_TRUE(hold(ranges, constant));
    EXPECT_TRUE(hold(ranges, block));
    own_arena.free(block);
    const auto others = std::make_unique<int>(1);
    const int on_the_stack = 1;
    EXPECT_FALSE(hold(ranges, others.get()));
    EXPECT_FALSE(hold(ranges, &on_the_stack));
    EXPECT_FALSE(hold(ranges, reinterpret_cast<const void*>(&own_ranges))) << "code is shared with others";
    EXPECT_FALSE(hold(ranges, reinterpret_cast<const void*>(&std::fclose))) << "another library";
    for (const Range& range : ranges) {
        EXPECT_EQ(range.begin % page_bytes(), 0u);
        EXPECT_EQ(range.end % page_bytes(), 0u);
    }
}

thread_local int of_the_thread = 1;

/// What a thread's hooks use is among its ranges, and little else is.
void expect_what_hooks_use() {
    const auto on_the_heap = std::make_unique<int>(1);
    const std::vector<Range> ranges = thread_ranges();
    EXPECT_TRUE(hold(ranges, __builtin_frame_address(0))) << "a sanitizer keeps variables elsewhere";
    EXPECT_TRUE(hold(ranges, &of_the_thread));
    EXPECT_FALSE(hold(ranges, on_the_heap.get()));
    EXPECT_FALSE(hold(ranges, &written));
    std::size_t bytes = 0;
    for (const Range& range : ranges) {
        EXPECT_EQ(range.begin % page_bytes(), 0u);
        EXPECT_EQ(range.end % page_bytes(), 0u);
        bytes += range.bytes();
    }
    EXPECT_LE(bytes, std::size_t{512} << 10);
}

TEST(ThreadPages, AreTheStackInUseAndTheVariablesOfTheThread) {
    expect_what_hooks_use();
    std::thread(expect_what_hooks_use).join();
}

TEST(ThreadPages, AreNoneOnAForeignStack) {
    const std::size_t bytes = std::size_t{256} << 10;
    const auto stack = std::make_unique<char[]>(bytes);
    static ucontext_t here;
    static ucontext_t there;
    static std::size_t found;
    found = 99;
    ASSERT_EQ(::getcontext(&there), 0);
    there.uc_stack.ss_sp = stack.get();
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    ::makecontext(&there, [] { found = thread_ranges().size(); }, 0);
    ASSERT_EQ(::swapcontext(&here, &there), 0);
    EXPECT_EQ(found, 0u);
}

class BringPages : public ::testing::Test {
  protected:
    static constexpr std::size_t pages = 3000;
    static constexpr Address base = Address{1} << 32;
    static Address page(std::size_t number) { return base + number * page_bytes(); }

    BringPages() : simulated_({10000, 10000, 10000}), kernel_(simulated_) {
        simulated_.map({base, page(pages)});
        for (std::size_t i = 0; i < pages; ++i)
            if (i % 3 != 2) simulated_.place({page(i), page(i + 1)}, static_cast<int>(i % 3));
    }

    /// The first range has all pages but the last ten, the second some of those.
    std::vector<Range> ranges_{{base, page(pages - 10)}, {page(pages - 5), page(pages - 2)}};
    SimulatedKernel simulated_;
    FailingKernel kernel_;
};

TEST_F(BringPages, ThoseThatAreThereComeAndNoOthersAreTouched) {
    EXPECT_EQ(bring_pages(kernel_, ranges_, 1), pages / 3 - 2);
    for (std::size_t i = 0; i < pages; ++i) {
        const bool asked = i < pages - 10 || (i >= pages - 5 && i < pages - 2);
        const int before = i % 3 == 2 ? SimulatedKernel::absent : static_cast<int>(i % 3);
        EXPECT_EQ(simulated_.where(page(i)), asked && before >= 0 ? 1 : before) << i;
    }
    EXPECT_EQ(bring_pages(kernel_, ranges_, 1), 0u);
}

TEST_F(BringPages, OneThatStaysHoldsNoOthersBack) {
    simulated_.make_busy({page(300), page(301)});
    simulated_.make_busy({page(600), page(601)});
    EXPECT_EQ(bring_pages(kernel_, ranges_, 1), pages / 3 - 4);
    EXPECT_EQ(simulated_.where(page(300)), 0);
    EXPECT_EQ(simulated_.where(page(303)), 1);
}

TEST_F(BringPages, OfANewThreadTheFirstPagesComeWhateverStays) {
    simulated_.make_busy({page(0), page(1)});
    const std::size_t came = bring_few_pages(kernel_, {page(0), page(100)}, 1);
    EXPECT_EQ(came, 21u) << "of 64 pages 22 lie on node 0, and the first of them is busy";
    EXPECT_EQ(simulated_.where(page(0)), 0);
    EXPECT_EQ(simulated_.where(page(3)), 1);
    EXPECT_EQ(simulated_.where(page(66)), 0) << "beyond the first 64";
    EXPECT_EQ(bring_few_pages(kernel_, {page(0), page(0)}, 1), 0u);
    kernel_.fail(KernelCall::query, EPERM);
    EXPECT_EQ(bring_few_pages(kernel_, {page(99), page(120)}, 1), 0u);
}

TEST_F(BringPages, WhereTheKernelRefusesNothingHappens) {
    for (const int error : {EPERM, ENOSYS, EACCES, ENODEV, ENOMEM, EFAULT}) {
        kernel_.fail(KernelCall::query, error);
        EXPECT_EQ(bring_pages(kernel_, ranges_, 1), 0u);
    }
    FailingKernel refusing(simulated_);
    refusing.fail(KernelCall::move, EPERM);
    EXPECT_EQ(bring_pages(refusing, ranges_, 1), 0u);
    EXPECT_EQ(simulated_.where(page(0)), 0);
}

} // namespace
} // namespace homing::own_pages_tests
