// The whole engine over areas that are uneven: used in part, of many blocks, never used, or thousands of
// them.
#include "simulated_program.hpp"

#include <cerrno>
#include <utility>

namespace homing::engine_areas_tests {
namespace {

/// A region that uses pages [first, end) only, each by the node that has its part of them.
void use(Program& program, Address function, std::size_t first, std::size_t end) {
    program.engine->region_begin(function);
    for (std::size_t page = first; page < end; ++page)
        program.touch(page, static_cast<int>((page - first) * nodes / (end - first)));
    program.engine->region_end();
}

/// A program that uses pages [first, end) of what it has, initialised by one thread.
void expect_home(Program& program, std::size_t first, std::size_t end, bool settles = true) {
    const auto address = [&](std::size_t page) { return program.range.begin + page * page_bytes(); };
    program.simulated.set_absent_error(EFAULT);
    program.simulated.touch_all({address(first), address(end)}, 0);
    ASSERT_TRUE(program.start());
    for (int i = 0; i < 40; ++i)
        for (Address function : {0x1000, 0x2000, 0x3000})
            use(program, function, first, end);
    std::size_t right = 0;
    for (std::size_t page = first; page < end; ++page)
        right += program.simulated.where(address(page)) ==
                 static_cast<int>((page - first) * nodes / (end - first));
    EXPECT_GE(right, (end - first) * 98 / 100);
    EXPECT_TRUE(program.engine->statistics().settled_at > 0 || !settles);
    program.engine->finish();
    std::size_t asked = 0;
    for (const SimulatedKernel::Logged& call : program.simulated.log())
        if (call.call == KernelCall::query) asked += call.pages;
    // To look at every page of the smallest program once would ask for 1,048,576.
    EXPECT_LT(asked, 60 * (end - first) + 50'000) << "pages were asked for that do not exist";
}

constexpr std::size_t gibibyte = (std::size_t{1} << 30) / 4096;

TEST_F(EngineTest, TheUsedPartOfALargeArrayComesHome) {
    for (const bool told : {true, false})
        for (const auto& [first, end] :
             {std::pair<std::size_t, std::size_t>{0, 8192}, {70'000, 75'000}, {3 * gibibyte, 4 * gibibyte}}) {
            Program program(4 * gibibyte);
            if (told) program.simulated.tell_populated();
            SCOPED_TRACE(first);
            // Where the kernel tells what exists by single pages only, the ends of a large part are known
            // roughly: its blocks seem to have other borders, and the engine may go on asking.
            expect_home(program, first, end, told || end - first < gibibyte);
        }
}

TEST_F(EngineTest, SoDoesTheUsedPartOfATerabyte) {
    for (const std::size_t first : {std::size_t{0}, 500 * gibibyte + 12'345}) {
        Program program(1024 * gibibyte);
        program.simulated.tell_populated();
        expect_home(program, first, first + 8192);
    }
    Program program(1024 * gibibyte); // where single pages can be asked for only, its start is looked at
    expect_home(program, 0, 8192);
}

TEST_F(EngineTest, AMatrixThatIsAllocatedRowByRowComesHome) {
    constexpr std::size_t rows = 512, row_pages = 32, distance = row_pages + 1;
    Program program(rows * distance);
    area_registry().end(program.range.begin);
    const auto row_begin = [&](std::size_t row) {
        return program.range.begin + row * distance * page_bytes() + 16;
    };
    for (std::size_t row = 0; row < rows; ++row) {
        const Address origin[max_origin_frames] = {0x4242};
        area_registry().note({row_begin(row), row_begin(row) + row_pages * page_bytes()},
                             AreaKind::heap_block, origin, 1, nullptr);
    }
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    program.iterate(40, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 98 / 100);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
    program.engine->finish();
    for (std::size_t row = 0; row < rows; ++row)
        area_registry().end(row_begin(row));
}

TEST_F(EngineTest, ALargeArrayBesideThousandsOfSmallOnesComesHome) {
    constexpr std::size_t large = 16384, small = 8, count = 3000;
    Program program(large + count * small);
    area_registry().end(program.range.begin);
    const auto block = [&](std::size_t page, std::size_t pages, Address from) {
        const Address origin[max_origin_frames] = {from};
        const Address begin = program.range.begin + page * page_bytes();
        area_registry().note({begin, begin + pages * page_bytes()}, AreaKind::heap_block, origin, 1, nullptr);
    };
    const Variable minimum("HOMING_AREA_MINIMUM", "16K");
    block(0, large, 0x4243);
    for (std::size_t i = 0; i < count; ++i)
        block(large + i * small, small, 0x5000 + i);
    program.simulated.touch_all(program.range, 0);
    ASSERT_TRUE(program.start());
    const auto owner = [&](std::size_t page) {
        return static_cast<int>(page < large ? page * nodes / large : page / small % nodes);
    };
    std::size_t right = 0;
    int iterations = 0;
    while (right < large * 95 / 100 && iterations < 60) {
        program.iterate(1, owner);
        ++iterations;
        right = 0;
        for (std::size_t page = 0; page < large; ++page)
            right += program.simulated.where(program.range.begin + page * page_bytes()) == owner(page);
    }
    EXPECT_LT(iterations, 60);
    program.engine->finish();
    area_registry().end(program.range.begin);
    for (std::size_t i = 0; i < count; ++i)
        area_registry().end(program.range.begin + (large + i * small) * page_bytes());
}

TEST_F(EngineTest, APoolThatIsUsedMoreAndMoreComesHome) {
    Program program(2 * gibibyte);
    program.simulated.tell_populated();
    program.simulated.set_absent_error(EFAULT);
    const auto address = [&](std::size_t page) { return program.range.begin + page * page_bytes(); };
    ASSERT_TRUE(program.start());
    for (std::size_t part = 0; part < 4; ++part) {
        const std::size_t first = part * 8192, end = first + 8192;
        program.simulated.touch_all({address(first), address(end)}, 0);
        for (int i = 0; i < 40; ++i)
            for (Address function : {0x1000, 0x2000, 0x3000})
                use(program, function + 16 * part, first, end);
    }
    std::size_t right = 0;
    for (std::size_t page = 0; page < 4 * 8192; ++page)
        right += program.simulated.where(address(page)) == static_cast<int>(page % 8192 * nodes / 8192);
    EXPECT_GE(right, std::size_t{4 * 8192 * 9 / 10});
}

/// A program that first uses its array in its first region: a look for what it uses takes so long, and the
/// one before the first region is in vain.
struct SlowLooks : Program {
    SlowLooks(std::size_t pages, double look_seconds) : Program(pages) {
        simulated.tell_populated();
        simulated.set_absent_error(EFAULT);
        kernel.before([look_seconds](KernelCall call) {
            if (call == KernelCall::populated) simulated_seconds += look_seconds;
        });
    }
};

TEST_F(EngineTest, RestsNotBeforeItHasLookedForWhatIsUsed) {
    SlowLooks program(2048, 10e-3); // the next one after 130 iterations
    program.simulated.hide_page_faults();
    ASSERT_TRUE(program.start());
    program.iterate(1, [](std::size_t) { return 0; });
    program.iterate(60, program.block());
    EXPECT_EQ(program.engine->statistics().references, 0u);
    EXPECT_EQ(program.engine->statistics().settled_at, 0u);
    program.iterate(140, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 98 / 100);
    EXPECT_GT(program.engine->statistics().settled_at, 0u);
}

TEST_F(EngineTest, PageFaultsTellThatAnotherLookIsWorthWhile) {
    SlowLooks program(2048, 0);
    bool first = true; // it is in vain: by its share of the time the next one comes after 130 iterations
    program.kernel.before([&](KernelCall call) {
        if (call == KernelCall::populated && std::exchange(first, false)) simulated_seconds += 10e-3;
    });
    ASSERT_TRUE(program.start());
    program.region(0x9000, [](std::size_t) { return 0; });
    program.iterate(10, program.block());
    EXPECT_GE(program.right(program.block()), program.pages() * 98 / 100);
}

/// Blocks that come and go bring page faults all the time, and tell nothing of what is not used.
TEST_F(EngineTest, PageFaultsElsewhereAskForFewLooksInVain) {
    SlowLooks program(4096, 0.1e-3);
    area_registry().end(program.range.begin);
    const Address one[max_origin_frames] = {0x1234}, other[max_origin_frames] = {0x4321};
    area_registry().note(program.part(0, 1024), AreaKind::heap_block, one, 1, nullptr);
    area_registry().note(program.part(1024, 2048), AreaKind::heap_block, other, 1, nullptr);
    ASSERT_TRUE(program.start());
    const auto looks = [&] { return program.simulated.calls(KernelCall::populated); };
    std::size_t before = 0;
    for (int i = 0; i < 400; ++i) {
        if (i == 40) before = looks();
        program.engine->region_begin(0x1000);
        for (std::size_t page = 0; page < 1024; ++page)
            program.touch(page, static_cast<int>(page * nodes / 1024));
        // Memory that is no area: 64 pages come anew.
        program.simulated.map(program.part(2048, 4096));
        for (std::size_t page = 2048; page < 2112; ++page)
            program.touch(page, 0);
        program.engine->region_end();
    }
    // Some for the array that is used, and a share of the time of some two seconds for the one that is not.
    EXPECT_LE(looks() - before, 60u);
    area_registry().end(program.part(1024, 1024).begin);
}

TEST_F(EngineTest, ALookInVainIsSoonFollowedByAnother) {
    SlowLooks program(256, 0.2e-3); // by its share of the time after 20 iterations
    program.simulated.hide_page_faults();
    ASSERT_TRUE(program.start());
    program.iterate(4, program.block());
    EXPECT_GT(program.engine->statistics().references, 0u);
}

TEST_F(EngineTest, MemoryThatIsNotUsedIsNotAskedAboutAtEachDecision) {
    Program program(2048);
    program.simulated.set_absent_error(EFAULT);
    program.simulated.touch_all(program.range, 0);
    constexpr std::size_t arrays = 100, array_pages = 2048;
    std::vector<void*> untouched;
    for (std::size_t i = 0; i < arrays; ++i) {
        untouched.push_back(::mmap(nullptr, array_pages * page_bytes(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        const Range range = range_of(untouched.back(), array_pages * page_bytes());
        program.simulated.map(range);
        const Address origin[max_origin_frames] = {0x5000 + i};
        area_registry().note(range, AreaKind::heap_block, origin, 1, nullptr);
    }
    ASSERT_TRUE(program.start());
    program.iterate(20, program.block());
    program.engine->finish();
    std::size_t asked = 0;
    for (const auto& logged : program.simulated.log())
        for (const void* array : untouched)
            if (logged.call == KernelCall::query &&
                range_of(array, array_pages * page_bytes()).contains(logged.range.begin)) {
                asked += logged.pages;
                break;
            }
    EXPECT_LT(asked, arrays * 500);
    EXPECT_GE(program.right(program.block()), program.pages() * 98 / 100);
    for (void* array : untouched) {
        area_registry().end(reinterpret_cast<Address>(array));
        ::munmap(array, array_pages * page_bytes());
    }
}

} // namespace
} // namespace homing::engine_areas_tests
