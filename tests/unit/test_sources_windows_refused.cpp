// Windows over a kernel that refuses to protect what it is asked to.
#include "windows_test.hpp"

namespace homing::sources_windows_refused_tests {
namespace {

/// One window after the other, of these granules.
void open_some(Windows& windows, std::span<const Range> granules, int times) {
    std::vector<Reference> seen;
    for (int time = 0; time < times; ++time) {
        windows.open(granules, there);
        windows.close();
        windows.drain(seen);
    }
}

TEST_F(WindowsTest, RefusalsNowAndThenInALongRunEndNothing) {
    int asked = 0;
    kernel.refuses = [&](const NotingKernel::Change& change) {
        return change.access == Access::none && ++asked % 3 != 0 ? ENOMEM : 0;
    };
    open_some(windows, apart, 300);
    EXPECT_EQ(windows.forbidden(), nullptr);
    EXPECT_GT(windows.costs().armed, 100u);
}

TEST_F(WindowsTest, AKernelThatRefusesAlwaysIsAskedNoMore) {
    kernel.refuses = [](const NotingKernel::Change& change) {
        return change.access == Access::none ? ENOMEM : 0;
    };
    open_some(windows, apart, 300);
    EXPECT_NE(windows.forbidden(), nullptr);
    EXPECT_LT(kernel.changes_of(apart[0]).size(), 300u);
}

/// Of huge pages of a pool the kernel protects whole ones only, of a neighbour what it is asked for.
TEST_F(WindowsTest, AnAreaThatCannotBeProtectedInSuchPiecesIsLeftOutAlone) {
    const WatchedRange areas[] = {{{page(0).begin, page(512).begin}, page_bytes()},
                                  {{page(512).begin, page(1024).end}, page_bytes()}};
    ASSERT_TRUE(windows.start(areas));
    const Range pool = areas[1].range;
    kernel.refuses = [&](const NotingKernel::Change& change) {
        return change.access == Access::none && change.range.overlaps(pool) ? EINVAL : 0;
    };
    const std::array<Range, 3> granules{page(511), page(512), page(700)};
    windows.open(granules, there);
    windows.close();
    const std::size_t asked = kernel.changes_of(pool).size();
    open_some(windows, granules, 300);
    EXPECT_EQ(windows.forbidden(), nullptr);
    EXPECT_GE(windows.costs().armed, 300u) << "the neighbour";
    EXPECT_EQ(kernel.changes_of(pool).size(), asked) << "not again";
}

} // namespace
} // namespace homing::sources_windows_refused_tests
