#include "areas/populated.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>

namespace homing::areas_populated_tests {
namespace {

class Populated : public ::testing::Test {
  protected:
    static constexpr std::size_t pages = 1500; // more than is read in one go

    void SetUp() override {
        memory = static_cast<char*>(::mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(memory, MAP_FAILED);
        ::madvise(memory, pages * page_bytes(), MADV_NOHUGEPAGE);
    }
    void TearDown() override { ::munmap(memory, pages * page_bytes()); }

    void touch(std::size_t first, std::size_t end) const {
        for (std::size_t page = first; page < end; ++page)
            memory[page * page_bytes()] = 1;
    }
    Range range(std::size_t first, std::size_t end) const {
        return range_of(memory + first * page_bytes(), (end - first) * page_bytes());
    }
    /// By both ways to find out.
    void expect_first(Range where, Range expected, const char* what) {
        for (const bool after_fork : {false, true}) {
            PopulatedPages populated("/proc");
            const std::optional<Range> found = populated.first(where, after_fork);
            ASSERT_TRUE(found) << what;
            EXPECT_EQ(found->begin, expected.begin) << what << after_fork;
            EXPECT_EQ(found->end, expected.end) << what << after_fork;
        }
    }

    char* memory = nullptr;
};

TEST_F(Populated, TheFirstRunOfPages) {
    touch(3, 900);
    touch(1000, pages);
    expect_first(range(0, pages), range(3, 900), "begins later");
    expect_first(range(3, 900), range(3, 900), "all");
    expect_first(range(900, pages), range(1000, pages), "until the end");
    expect_first(range(910, 990), range(990, 990), "none");
    expect_first(range(5, 5), range(5, 5), "nothing");
}

TEST_F(Populated, NeitherTheZeroPageNorWhatWasGivenBack) {
    touch(0, 10);
    ::madvise(memory, 4 * page_bytes(), MADV_DONTNEED);
    volatile const char read = memory[2 * page_bytes()];
    (void)read;
    expect_first(range(0, 10), range(4, 10), "given back and read");
}

TEST_F(Populated, NoPagesOfAFileUntilTheyAreWritten) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    const std::size_t bytes = 4 * page_bytes();
    ASSERT_EQ(::ftruncate(::fileno(file), static_cast<off_t>(bytes)), 0);
    void* map = ::mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, ::fileno(file), 0);
    ASSERT_EQ(map, memory);
    for (std::size_t page = 0; page < 4; ++page) {
        volatile const char read = memory[page * page_bytes()];
        (void)read;
    }
    touch(1, 3);
    expect_first(range(0, 4), range(1, 3), "copied on write");
    std::fclose(file);
}

TEST_F(Populated, AfterAForkOnlyWhatIsNotShared) {
    touch(0, 10);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        char byte;
        ::_exit(::close(ends[1]) == 0 && ::read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    touch(6, 8);
    PopulatedPages populated("/proc");
    const std::optional<Range> found = populated.first(range(0, 10), true);
    ::close(ends[1]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->begin, range(6, 8).begin);
    EXPECT_EQ(found->end, range(6, 8).end);
}

TEST_F(Populated, NothingIsKnownWithoutThePageMap) {
    PopulatedPages populated("/nowhere");
    EXPECT_FALSE(populated.first(range(0, 10), false));
}

} // namespace
} // namespace homing::areas_populated_tests
