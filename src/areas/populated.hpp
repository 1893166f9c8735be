// Populated memory: pages on which no access allocates anything.
#pragma once

#include "base/pages.hpp"

#include <optional>
#include <string>

namespace homing {

/// Looks for populated pages of this process in /proc/self/pagemap: pages that are in memory, anonymous, and
/// mapped by this process alone. The others would be allocated at some access: pages that do not exist or are
/// swapped out, the zero page, a file's pages, and those that are shared with a child of a fork until one of
/// the two writes to them.
class PopulatedPages {
  public:
    /// `proc`: the root of procfs.
    explicit PopulatedPages(const char* proc) : path_(std::string(proc) + "/self/pagemap") {}
    ~PopulatedPages() { close(); }
    PopulatedPages(const PopulatedPages&) = delete;
    PopulatedPages& operator=(const PopulatedPages&) = delete;

    /// The first populated pages of a page-aligned range, one after the other; an empty range at its end
    /// where there are none, nothing where the kernel does not tell. Without `after_fork` no page is taken
    /// for shared with a child, which is cheaper to find out. The file stays open until close().
    std::optional<Range> first(Range range, bool after_fork) noexcept;
    void close() noexcept;

  private:
    std::optional<Range> first_by_entries(Range range) noexcept;

    std::string path_;
    int file_ = -1;
    bool scans_ = true; ///< as far as is known, the kernel has PAGEMAP_SCAN
};

} // namespace homing
