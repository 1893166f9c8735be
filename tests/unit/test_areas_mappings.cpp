#include "areas/proc_maps.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/mman.h>
#include <unistd.h>

namespace homing::areas_mappings_tests {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Memory between two pages that nobody may use, or the kernel joins it with what lies beside it.
struct Mapped {
    Mapped(std::size_t size, int flags = MAP_PRIVATE)
        : bytes(size), whole(static_cast<char*>(::mmap(nullptr, size + 2 * page_bytes(), PROT_NONE,
                                                       flags | MAP_ANONYMOUS, -1, 0))),
          memory(whole + page_bytes()) {
        ::mprotect(memory, bytes, PROT_READ | PROT_WRITE);
    }
    ~Mapped() { ::munmap(whole, bytes + 2 * page_bytes()); }
    Range range() const {
        return {reinterpret_cast<Address>(memory), reinterpret_cast<Address>(memory) + bytes};
    }
    std::size_t bytes;
    char* whole;
    char* memory;
};

/// The bytes of a range that are reported as unwatched under a name of their own. Where the small pieces
/// begin that are reported together depends on what else this process has mapped.
std::size_t unwatched_bytes(Range range, const std::vector<Range>& watched, std::size_t minimum = mib) {
    std::size_t bytes = 0;
    for (const Unwatched& found : unwatched_mappings(watched, minimum)) {
        if (found.what.starts_with("small pieces")) continue;
        const Address begin = std::max(range.begin, found.range.begin);
        const Address end = std::min(range.end, found.range.end);
        if (begin < end) bytes += end - begin;
    }
    return bytes;
}

TEST(Mappings, NamesPopulatedMemoryThatNoAreaCovers) {
    Mapped used(8 * mib);
    std::memset(used.memory, 1, used.bytes);
    Mapped reserved(64 * mib);
    Mapped shared(8 * mib, MAP_SHARED);
    std::memset(shared.memory, 1, shared.bytes);
    EXPECT_EQ(unwatched_bytes(used.range(), {}), used.bytes);
    EXPECT_EQ(unwatched_bytes(used.range(), {used.range()}), 0u);
    EXPECT_EQ(unwatched_bytes(shared.range(), {}), shared.bytes);
    const Range middle{used.range().begin + 2 * mib, used.range().begin + 4 * mib};
    EXPECT_EQ(unwatched_bytes(used.range(), {middle}), 6 * mib);
    const Range almost{used.range().begin + mib / 2, used.range().end};
    EXPECT_EQ(unwatched_bytes(used.range(), {almost}), 0u) << "what is left is too small to be named";
}

TEST(Mappings, ManySmallPiecesOfAKindAreNamedTogether) {
    constexpr std::size_t piece = 256 << 10, pieces = 64;
    Mapped memory(2 * piece * pieces);
    for (std::size_t i = 0; i < pieces; ++i) {
        std::memset(memory.memory + 2 * i * piece, 1, piece);
        ::mprotect(memory.memory + (2 * i + 1) * piece, piece, PROT_NONE);
    }
    std::size_t bytes = 0;
    for (const Unwatched& found : unwatched_mappings({}, mib))
        if (found.what.starts_with("small pieces: thread stacks")) bytes += found.bytes;
    EXPECT_GE(bytes, pieces * piece);
}

TEST(Mappings, MemoryThatIsOnlyReadIsNamed) {
    Mapped memory(8 * mib);
    std::memset(memory.memory, 1, memory.bytes);
    ::mprotect(memory.memory, memory.bytes, PROT_READ);
    EXPECT_EQ(unwatched_bytes(memory.range(), {}), memory.bytes);
}

TEST(Mappings, OfMemoryThatIsReservedThePagesThatAreThereCount) {
    Mapped memory(64 * mib);
    std::memset(memory.memory, 1, 8 * mib);
    std::size_t bytes = 0;
    for (const Unwatched& found : unwatched_mappings({}, mib))
        if (found.range.overlaps(memory.range())) bytes += found.bytes;
    EXPECT_GE(bytes, 7 * mib);
    EXPECT_LE(bytes, 10 * mib);
}

TEST(Mappings, ReservedMemoryIsNotNamed) {
    Mapped reserved(512 * mib, MAP_PRIVATE | MAP_NORESERVE);
    EXPECT_EQ(unwatched_bytes(reserved.range(), {}, 64 * mib), 0u);
}

TEST(Mappings, ParsesEveryLineOfThisProcess) {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    int lines = 0;
    bool heap_or_stack = false;
    while (std::getline(maps, line)) {
        Mapping mapping;
        ASSERT_TRUE(parse_mapping(line, mapping)) << line;
        heap_or_stack |= mapping.name == "[stack]" || mapping.name == "[heap]";
        ++lines;
    }
    EXPECT_GT(lines, 10);
    EXPECT_TRUE(heap_or_stack);
}

TEST(Mappings, ParsesNamesWithSpaces) {
    Mapping mapping;
    ASSERT_TRUE(parse_mapping("7f00-7f10 rw-s 00001000 fe:01 1234    /tmp/a file (deleted)", mapping));
    EXPECT_EQ(mapping.range.begin, 0x7f00u);
    EXPECT_TRUE(mapping.shared);
    EXPECT_EQ(mapping.name, "/tmp/a file (deleted)");
    ASSERT_TRUE(parse_mapping("7f00-7f10 ---p 00000000 00:00 0", mapping));
    EXPECT_TRUE(mapping.name.empty());
    EXPECT_FALSE(mapping.readable);
    for (const char* bad : {"", "x", "7f00", "7f00-", "7f10-7f00 rw-p 0 0:0 0", "7f00-7f10 rw", "Size: 4 kB",
                            "7f00-7f10 rw-p 0", "AnonHugePages:  0 kB"}) {
        EXPECT_FALSE(parse_mapping(bad, mapping)) << bad;
    }
}

class Smaps : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/homing-smaps-XXXXXX";
        const int descriptor = ::mkstemp(name);
        ASSERT_GE(descriptor, 0);
        ::close(descriptor);
        path = name;
    }
    void TearDown() override { std::filesystem::remove(path); }
    bool huge(Range range) const { return smaps_hold_huge_pages(range, path.c_str()); }
    void write(const std::string& content) const { std::ofstream(path, std::ios::trunc) << content; }
    std::string path;
    const std::string text = "1000000-1400000 rw-p 00000000 00:00 0 \n"
                             "Size:               4096 kB\n"
                             "KernelPageSize:        4 kB\n"
                             "AnonHugePages:         0 kB\n"
                             "2000000-2400000 rw-p 00000000 00:00 0 \n"
                             "KernelPageSize:        4 kB\n"
                             "AnonHugePages:      2048 kB\n"
                             "3000000-3400000 rw-s 00000000 00:0f 77      /dev/hugepages/x\n"
                             "KernelPageSize:     2048 kB\n"
                             "AnonHugePages:         0 kB\n";
};

TEST_F(Smaps, HugePagesOfTheMappingsAsked) {
    if (page_bytes() != 4096) GTEST_SKIP() << "recorded with 4 KiB pages";
    write(text);
    EXPECT_FALSE(huge({0x1000000, 0x1400000}));
    EXPECT_TRUE(huge({0x2000000, 0x2001000}));
    EXPECT_TRUE(huge({0x1000000, 0x2400000}));
    EXPECT_TRUE(huge({0x3000000, 0x3001000})) << "hugetlbfs";
    EXPECT_FALSE(huge({0x2400000, 0x3000000})) << "between mappings";
    EXPECT_FALSE(smaps_hold_huge_pages({0x2000000, 0x2001000}, "/no/such/file"));
}

TEST_F(Smaps, AnyTextIsSurvived) {
    EXPECT_TRUE(rc::check("damaged text", [this] {
        std::string damaged = text;
        const int changes = *rc::gen::inRange(0, 10);
        for (int i = 0; i < changes; ++i) {
            damaged[*rc::gen::inRange<std::size_t>(0, damaged.size())] = *rc::gen::arbitrary<char>();
        }
        damaged.resize(*rc::gen::inRange<std::size_t>(0, damaged.size()));
        write(damaged);
        huge({0x2000000, 0x2001000});
        unwatched_mappings({{0x1000000, 0x1100000}}, 4096, path.c_str());
    }));
    std::string long_line(100'000, 'x');
    long_line.append("\n").append(text);
    write(long_line);
    EXPECT_TRUE(huge({0x2000000, 0x2001000})) << "a line longer than the buffer";
}

/// An array, the program's data with the zeros after it, a hole, a library beside anonymous memory.
TEST(Mappings, AnArrayIsOfOneObject) {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / ("homing-maps-" + std::to_string(::getpid()));
    std::ofstream(file) << "00010000-00020000 r--p 00000000 fd:00 7 /bin/a\n"
                           "00020000-00030000 rw-p 00010000 fd:00 7 /bin/a\n"
                           "00030000-00050000 rw-p 00000000 00:00 0 \n"
                           "00060000-00070000 rw-p 00000000 00:00 0 [heap]\n"
                           "00070000-00080000 rw-p 00000000 00:00 0 \n"
                           "00080000-00090000 rw-p 00000000 fd:00 8 /lib/b.so\n"
                           "00090000-000a0000 rw-p 00000000 fd:00 9 /lib/c.so\n";
    const auto of_one = [&](Address begin, Address end) {
        return is_of_one_object({begin, end}, file.c_str());
    };
    EXPECT_TRUE(of_one(0x38000, 0x40000));
    EXPECT_TRUE(of_one(0x28000, 0x48000)) << "initialised data, and zeros after it";
    EXPECT_TRUE(of_one(0x1f000, 0x21000)) << "two segments of one file";
    EXPECT_TRUE(of_one(0x60000, 0x80000));
    EXPECT_FALSE(of_one(0x48000, 0x61000)) << "a hole";
    EXPECT_FALSE(of_one(0x51000, 0x52000)) << "not mapped";
    EXPECT_FALSE(of_one(0x9f000, 0xa1000));
    EXPECT_FALSE(of_one(0x78000, 0x81000)) << "a library after the array";
    EXPECT_FALSE(of_one(0x88000, 0x91000));
    EXPECT_TRUE(is_of_one_object({0x1000, 0x2000}, "/no/such/file")) << "where it cannot be seen";
    std::filesystem::remove(file);
}

TEST(HugePages, AreSeenWhereTheKernelGivesThem) {
    Mapped small(8 * mib);
    ::madvise(small.memory, small.bytes, MADV_NOHUGEPAGE);
    std::memset(small.memory, 1, small.bytes);
    EXPECT_FALSE(holds_huge_pages(small.range()));

    Mapped large(16 * mib);
    if (::madvise(large.memory, large.bytes, MADV_HUGEPAGE) != 0) GTEST_SKIP() << "no transparent huge pages";
    std::memset(large.memory, 1, large.bytes);
    EXPECT_EQ(holds_huge_pages(large.range()), smaps_hold_huge_pages(large.range(), "/proc/self/smaps"))
        << "both ways to ask agree";
}

} // namespace
} // namespace homing::areas_mappings_tests
