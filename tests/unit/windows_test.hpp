// Windows over a kernel that notes what is asked of it: for the tests of windows.
#pragma once

#include "kernel/kernel.hpp"
#include "no_kernel.hpp"
#include "sources/windows.hpp"

#include <array>
#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <span>
#include <vector>

namespace homing {

inline constexpr Address first_page = 0x10000000;

inline Range page(std::size_t number) {
    const Address begin = first_page + number * page_bytes();
    return {begin, begin + page_bytes()};
}

/// Notes who changes the right to access what, and lets a test act in the middle of it.
class NotingKernel final : public NoKernel {
  public:
    struct Change {
        Range range;
        Access access;
    };
    std::function<void(const Change&)> within;

    int protect(Range range, Access access) noexcept override {
        const Change change{range, access};
        {
            const std::lock_guard lock(mutex_);
            changes_.push_back(change);
        }
        if (within) within(change);
        return refuses ? refuses(change) : 0;
    }
    std::function<int(const Change&)> refuses; ///< with this errno
    Mappings mappings() noexcept override {
        ++counted;
        return process;
    }
    Mappings process;
    int counted = 0;
    std::vector<Access> changes_of(Range range) const {
        const std::lock_guard lock(mutex_);
        std::vector<Access> found;
        for (const Change& change : changes_)
            if (change.range.overlaps(range)) found.push_back(change.access);
        return found;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<Change> changes_;
};

inline bool there() { return true; }

class WindowsTest : public testing::Test {
  protected:
    WindowsTest() {
        const WatchedRange all{{page(0).begin, page(1024).end}, page_bytes()};
        EXPECT_TRUE(windows.start(std::span(&all, 1)));
    }
    /// The first change of `at` to `access` is interrupted by what another thread does.
    void in_the_middle_of(Range at, Access access, const std::function<void()>& act) {
        kernel.within = [this, at, access, act](const NotingKernel::Change& change) {
            if (interrupted || change.access != access || !change.range.overlaps(at)) return;
            interrupted = true;
            act();
        };
    }

    NotingKernel kernel;
    Windows windows{kernel, 64};
    std::array<Range, 2> apart{page(1), page(3)};
    bool interrupted = false;
};

} // namespace homing
