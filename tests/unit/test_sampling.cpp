// The sampling mechanism over the simulated kernel: what really moves, whatever the program does.
#include "areas/named.hpp"
#include "engine/guarded.hpp"
#include "sampling/sampler.hpp"
#include "sampling/thread.hpp"
#include "simulated_program.hpp"

namespace homing::sampling::sampling_tests {
namespace {

constexpr std::size_t page_count = 400;

/// A program that runs region after region without any order, scanned between them.
class Scanned : public Program {
  public:
    explicit Scanned(std::uint64_t pages = 100, std::size_t node_pages = 1 << 20)
        : Program(page_count, node_pages) {
        initialise([](std::size_t) { return 0; });
        EXPECT_TRUE(start());
        engine->guarded([&] {
            auto one = std::make_unique<Sampler>(nodes, pages, 1.5);
            sampler = one.get();
            engine->move_by(std::move(one));
        });
    }
    /// A region that nobody has seen before, and a scan behind it.
    void step(const Owner& owner) {
        region(next_function += 0x100, owner);
        scan();
    }
    void scan() {
        engine->guarded([&] { sampler->scan(*engine); });
    }

    Sampler* sampler = nullptr;
    Address next_function = 0x10000;
};

class Sampling : public EngineTest {
    /// Time passes between scans, so that arming them is no large part of the run.
  protected:
    static void pass(double seconds = 1) { simulated_seconds += seconds; }
};

TEST_F(Sampling, PagesGoToWhoeverAccessesThemASliceAtATime) {
    Scanned program(100);
    const auto owner = program.block();
    std::size_t before = program.right(owner);
    EXPECT_EQ(before, page_count / nodes);
    for (int i = 0; i < 6; ++i) {
        program.step(owner);
        pass();
        const std::size_t now = program.right(owner);
        EXPECT_LE(now - before, 100u) << "no scan looks at more";
        before = now;
    }
    EXPECT_GE(program.right(owner), page_count - 2) << "those at the ends of the array are never armed";
    EXPECT_EQ(program.sampler->totals().scans, 6u);
    EXPECT_EQ(program.sampler->totals().scanned, 600u);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(Sampling, NothingRests) {
    Scanned program(page_count);
    const auto owner = program.block();
    for (int i = 0; i < 40; ++i) {
        program.step(owner);
        pass();
    }
    EXPECT_FALSE(program.engine->stability().settled());
    // Owners change: it follows.
    const auto other = [&](std::size_t page) { return nodes - 1 - owner(page); };
    for (int i = 0; i < 3; ++i) {
        program.step(other);
        pass();
    }
    EXPECT_GE(program.right(other), page_count - 2);
}

TEST_F(Sampling, PagesThatGoToAndFroFreeze) {
    Scanned program(page_count);
    const auto owner = program.block();
    const auto other = [&](std::size_t page) { return nodes - 1 - owner(page); };
    for (int i = 0; i < 12; ++i) {
        program.step(i % 2 ? other : owner);
        pass();
    }
    EXPECT_GE(program.sampler->totals().frozen, page_count - 2);
    const std::uint64_t moved = program.sampler->totals().moved;
    program.step(owner);
    program.step(other);
    EXPECT_EQ(program.sampler->totals().moved, moved);
}

TEST_F(Sampling, OnlyRegisteredMemoryIsScanned) {
    Scanned program(page_count);
    ASSERT_TRUE(name_area(program.part(200, 300), "hot", true));
    const auto owner = program.block();
    for (int i = 0; i < 4; ++i) {
        program.step(owner);
        pass();
    }
    for (std::size_t page = 0; page < page_count; ++page) {
        const int where = program.simulated.where(program.part(page, page + 1).begin);
        if (page < 200 || page >= 300) {
            EXPECT_EQ(where, 0) << page;
        }
    }
    EXPECT_GE(program.right(owner), page_count / nodes + 98);
    forget_named_area(program.part(200, 300).begin);
}

TEST_F(Sampling, AreasComeAndGoBetweenScans) {
    Scanned program(64);
    const auto owner = program.block();
    program.step(owner);
    pass();
    {
        Program::Owner none;
        const Range gone = program.part(0, page_count);
        area_registry().end(gone.begin);
        program.scan();
        EXPECT_EQ(program.engine->watch().areas().size(), 0u);
        const Address origin[max_origin_frames] = {0x1234};
        area_registry().note(gone, AreaKind::heap_block, origin, 1, nullptr);
    }
    for (int i = 0; i < 10; ++i) {
        program.step(owner);
        pass();
    }
    EXPECT_GE(program.right(owner), page_count - 2);
}

TEST_F(Sampling, ARefusedPageHoldsNoOtherBack) {
    Scanned program(page_count);
    const auto owner = program.block();
    program.kernel.refuse_pages(EBUSY, 3);
    for (int i = 0; i < 5; ++i) {
        program.step(owner);
        pass();
    }
    EXPECT_GT(program.sampler->totals().moved, page_count / 2);
    EXPECT_EQ(program.stuck, 0u);
}

TEST_F(Sampling, AFullNodeEndsNothing) {
    Scanned program(page_count, page_count + 8);
    program.simulated.map({0x700000000000, 0x700000000000 + page_count * page_bytes()});
    for (int node = 1; node < nodes; ++node)
        for (std::size_t page = 0; page < page_count / 2; ++page)
            program.simulated.touch(0x700000000000 + page * page_bytes(), node);
    const auto owner = program.block();
    for (int i = 0; i < 5; ++i) {
        program.step(owner);
        pass();
    }
    EXPECT_EQ(program.stuck, 0u);
}

/// Scans that are dear come less often after the first ones: a hundredth of a core, whatever was asked for;
/// pages move all the same.
TEST_F(Sampling, ScansTakeAHundredthOfACoreAfterTheFirstOnes) {
    constexpr int first_scans = 32;
    for (const double query_seconds : {1e-6, 1e-3, 0.02, 0.5}) {
        SCOPED_TRACE(query_seconds);
        Scanned program(page_count);
        const auto owner = program.block();
        program.kernel.before([&](KernelCall call) {
            if (call == KernelCall::query) simulated_seconds += query_seconds;
        });
        const double begin = simulated_seconds;
        double spent = 0;
        for (int i = 0; i < first_scans + 12; ++i) {
            program.region(0x40000 + 0x100 * static_cast<Address>(i), owner);
            const double before = simulated_seconds;
            program.scan();
            const double took = simulated_seconds - before;
            program.sampler->took(took);
            if (i >= first_scans) spent += took;
            const double pause = program.sampler->pause(0.1);
            EXPECT_GE(pause, 0.1);
            if (query_seconds < 1e-5 || i < first_scans) {
                EXPECT_EQ(pause, 0.1) << "what is cheap, and what is first, comes when it was asked for";
            }
            pass(pause);
        }
        EXPECT_LE(spent, 0.011 + 0.01 * (simulated_seconds - begin));
        EXPECT_EQ(program.right(owner), page_count);
        program.kernel.before({});
    }
}

/// The thread that ships: everything of the program that it shares is done in turn with it, as engine and
/// handlers do it (ThreadSanitizer sees the rest).
TEST_F(Sampling, TheThreadScansWhileRegionsRun) {
    const Variable mechanism("HOMING_MECHANISM", "sampling");
    const Variable interval("HOMING_SAMPLING_INTERVAL", "0.001");
    const Variable pages("HOMING_SAMPLING_PAGES", "150");
    Program program(page_count);
    program.initialise([](std::size_t) { return 0; });
    ASSERT_TRUE(program.start());
    begin(*program.engine);
    const auto owner = program.block();
    const auto in_turn = [&](auto&& work) { program.engine->guarded(work); };
    std::size_t right = 0;
    for (int i = 0; i < 20'000 && right < page_count - 2; ++i) {
        in_turn([] { pass(0.01); });
        program.engine->region_begin(0x1000 + 0x100 * static_cast<Address>(i % 7));
        for (std::size_t page = 0; page < page_count; ++page)
            in_turn([&] { program.touch(page, owner(page)); });
        program.engine->region_end();
        in_turn([&] { right = program.right(owner); });
        const timespec nap{0, 200'000};
        ::nanosleep(&nap, nullptr);
    }
    stop();
    EXPECT_GE(right, page_count - 2);
    EXPECT_EQ(program.stuck, 0u);
}

/// Whatever call fails with whatever errno, once or always: the program goes on, no page stays taken away,
/// and once calls work again pages move.
TEST_F(Sampling, EveryErrorOfEveryCallIsSurvived) {
    for (const KernelCall call : failing_calls)
        for (const int error : errnos_of(call))
            for (const std::size_t nth : {FailingKernel::every, std::size_t{2}}) {
                SCOPED_TRACE(name_of(call) + " errno " + std::to_string(error));
                Scanned program(page_count);
                const auto owner = program.block();
                program.kernel.fail(call, error, nth);
                for (int i = 0; i < 3; ++i) {
                    program.step(owner);
                    pass();
                }
                program.kernel.heal();
                for (int i = 0; i < 3; ++i) {
                    program.step(owner);
                    pass();
                }
                EXPECT_EQ(program.stuck, 0u);
                EXPECT_EQ(program.simulated.protected_pages(), 0u);
            }
}

TEST_F(Sampling, EveryErrorOfASinglePageIsSurvived) {
    for (const int error : page_errnos()) {
        SCOPED_TRACE("errno " + std::to_string(error));
        Scanned program(page_count);
        const auto owner = program.block();
        program.kernel.refuse_pages(error);
        for (int i = 0; i < 4; ++i) {
            program.step(owner);
            pass();
        }
        EXPECT_EQ(program.right(owner), page_count / nodes);
        EXPECT_GE(program.sampler->totals().frozen, page_count / 2) << "it is not tried for ever";
        EXPECT_EQ(program.stuck, 0u);
    }
}

} // namespace
} // namespace homing::sampling::sampling_tests
