// homing's own memory is known as such, whatever the kernel joins it with.
#include "base/own_mappings.hpp"
#include "base/raw_calls.hpp"

#include <gtest/gtest.h>

namespace homing::own_mappings_tests {
namespace {

TEST(OwnMappings, KnowWhatWasMappedUntilItIsUnmapped) {
    constexpr std::size_t bytes = 3 * 4096;
    void* const memory = raw::map_memory(bytes);
    ASSERT_NE(memory, nullptr);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    EXPECT_TRUE(own_mappings.overlap(begin, begin + 1));
    EXPECT_TRUE(own_mappings.overlap(begin - 4096, begin + 1)) << "an array that reaches into it";
    EXPECT_TRUE(own_mappings.overlap(begin + bytes - 1, begin + bytes + 4096));
    EXPECT_TRUE(own_mappings.overlap(begin - 4096, begin + bytes + 4096));
    raw::unmap(memory, bytes);
    EXPECT_FALSE(own_mappings.overlap(begin, begin + bytes));
}

TEST(OwnMappings, EndAtTheirLastByte) {
    OwnMappings ours;
    ours.add(0x10000, 0x20000);
    EXPECT_FALSE(ours.overlap(0x8000, 0x10000));
    EXPECT_FALSE(ours.overlap(0x20000, 0x21000));
    EXPECT_FALSE(ours.overlap(0, 0x1000));
    EXPECT_TRUE(ours.overlap(0x1ffff, 0x20000));
    ours.remove(0x10000);
    ours.remove(0x10000);
    EXPECT_FALSE(ours.overlap(0x10000, 0x20000));
}

TEST(OwnMappings, BeyondTheirRoomNoneIsForgotten) {
    OwnMappings ours;
    for (std::uintptr_t i = 1; i <= 1000; ++i)
        ours.add(i << 20, (i << 20) + 4096);
    for (std::uintptr_t i = 1; i <= 1000; ++i)
        EXPECT_TRUE(ours.overlap(i << 20, (i << 20) + 1)) << i;
    EXPECT_FALSE(ours.overlap(std::uintptr_t{2000} << 20, std::uintptr_t{2001} << 20));
}

} // namespace
} // namespace homing::own_mappings_tests
