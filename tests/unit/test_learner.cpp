// What arrays tell of each other.
#include "mechanisms/learner.hpp"

#include <gtest/gtest.h>

#include "machines.hpp"

namespace homing {
namespace {

constexpr int owners = 4;
constexpr std::uint64_t elements = 2000;

/// Rows of different lengths: blocks that are not even.
policy::Node owner_of(std::uint64_t element) {
    return element < 430 ? 0 : element < 1010 ? 1 : element < 1490 ? 2 : 3;
}
policy::Node shifted(std::uint64_t element) { return owner_of((element + 1700) % elements); }

/// In the middle of a page of an array of so many.
std::uint64_t element_of(std::uint64_t page, std::uint64_t pages) {
    return (2 * page + 1) * elements / (2 * pages);
}

/// Arrays of `elements` elements, of so many pages each.
class Arrays {
  public:
    template <class Owner> WatchedArea& add(std::uint64_t pages, std::uint64_t distance, Owner&& owner) {
        auto area = std::make_unique<WatchedArea>();
        area->id = static_cast<std::uint32_t>(watch_.areas().size());
        area->granules = pages;
        area->granule = page_bytes();
        area->plan = policy::SamplePlan(pages, 1);
        area->samples = policy::Samples(owners);
        for (std::uint64_t page = distance / 2; page < pages; page += distance)
            area->samples.add(page, owner(element_of(page, pages)));
        area->samples.settle();
        area->references = area->samples.size();
        area->ownership = policy::infer_ownership(pages, area->samples);
        watch_.areas().push_back(std::move(area));
        return *watch_.areas().back();
    }
    void refine(WatchedArea& area) {
        learner_.gather(watch_);
        learner_.refine(area);
    }

  private:
    Machine machine_ = machine_of(owners, 0);
    NodeMap nodes_{machine_};
    WatchList watch_{nodes_, 1};
    Learner learner_;
};

std::uint64_t wrong_pages(const WatchedArea& area) {
    std::uint64_t wrong = 0;
    for (std::uint64_t page = 0; page < area.granules; ++page)
        wrong += area.ownership.owner(page) != owner_of(element_of(page, area.granules));
    return wrong;
}

/// A sparse matrix: values of eight bytes, and the columns that they stand in, of four. What is known of
/// either is known of both.
TEST(Learner, ArraysOfAsManyElementsTellEachOtherTheirBorders) {
    Arrays arrays;
    WatchedArea& values = arrays.add(elements, 70, owner_of);
    arrays.add(elements / 2 + 1, 2, owner_of);
    ASSERT_GT(wrong_pages(values), 20u);
    arrays.refine(values);
    EXPECT_LE(wrong_pages(values), 6u);
    EXPECT_EQ(values.samples.size(), 29u) << "what is its own stays its own";
}

TEST(Learner, SoDoLargerOnes) {
    Arrays arrays;
    WatchedArea& flags = arrays.add(elements / 8, 12, owner_of);
    arrays.add(elements, 2, owner_of);
    ASSERT_GT(wrong_pages(flags), 6u);
    arrays.refine(flags);
    EXPECT_LE(wrong_pages(flags), 3u);
}

/// Neither one that is used in another way, nor one that cannot have as many elements, nor a few pages.
TEST(Learner, OtherArraysTellNothing) {
    const auto telling_with = [](std::uint64_t pages, auto owner) {
        Arrays arrays;
        WatchedArea& values = arrays.add(elements, 70, owner_of);
        arrays.add(pages, 2, owner);
        arrays.refine(values);
        return values.telling.size();
    };
    EXPECT_GT(telling_with(elements / 2, owner_of), 29u);
    EXPECT_EQ(telling_with(elements / 2, shifted), 29u);
    EXPECT_EQ(telling_with(elements * 2 / 3, owner_of), 29u);
    EXPECT_EQ(telling_with(elements / 2 + 5, owner_of), 29u);
    EXPECT_EQ(telling_with(elements / 64, owner_of), 29u);
}

} // namespace
} // namespace homing
