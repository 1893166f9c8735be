// Where the threads of the process may run, on machines of any size.
#include "kernel/simulated.hpp"
#include "machine/threads.hpp"

#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace homing::threads_tests {
namespace {

/// A kernel of 4,096 possible CPUs: CPU n belongs to node n / 1024. Thread t is bound to CPU t, but for
/// thread 1, which may run everywhere, thread 7, which has ended, and thread 9, which is not ours to look at.
constexpr std::size_t possible = 4096;
int affinity_of(pid_t thread, std::size_t bytes, cpu_set_t* cpus) noexcept {
    errno = bytes < possible / 8 ? EINVAL : thread == 7 ? ESRCH : thread == 9 ? EPERM : 0;
    if (errno) return -1;
    if (thread != 1) {
        CPU_SET_S(static_cast<std::size_t>(thread), bytes, cpus);
        return 0;
    }
    for (std::size_t cpu = 0; cpu < possible; ++cpu)
        CPU_SET_S(cpu, bytes, cpus);
    return 0;
}
int refused(pid_t, std::size_t, cpu_set_t*) noexcept {
    errno = EPERM;
    return -1;
}

class Threads : public ::testing::Test {
  protected:
    Threads() : kernel({1, 1, 1, 1}) {
        std::vector<int> node_of(possible);
        for (std::size_t cpu = 0; cpu < possible; ++cpu)
            node_of[cpu] = static_cast<int>(cpu / 1024);
        kernel.set_cpu_nodes(node_of);
        std::filesystem::remove_all(tasks);
    }
    ~Threads() override { std::filesystem::remove_all(tasks); }
    ThreadBinding look(std::initializer_list<int> threads, AffinityOf by = affinity_of) {
        for (const int thread : threads)
            std::filesystem::create_directories(tasks / std::to_string(thread));
        return record_threads(kernel, tasks.c_str(), by);
    }
    SimulatedKernel kernel;
    std::filesystem::path tasks =
        std::filesystem::path(::testing::TempDir()) / ("tasks." + std::to_string(::getpid()));
};

TEST_F(Threads, AreSeenWhereACpuSetOfTheLibraryIsTooSmall) {
    const ThreadBinding binding = look({3, 1500, 4000});
    EXPECT_EQ(binding.threads, 3);
    EXPECT_EQ(binding.bound, 3);
    EXPECT_EQ(binding.unknown, 0);
}

TEST_F(Threads, ThatMayRunOnSeveralNodesAreNotBound) {
    const ThreadBinding binding = look({1, 2000});
    EXPECT_EQ(binding.threads, 2);
    EXPECT_EQ(binding.bound, 1);
}

TEST_F(Threads, AreBoundToANodeOrToNone) {
    EXPECT_EQ(bound_node(kernel,
                         [](pid_t thread, std::size_t bytes, cpu_set_t* cpus) noexcept {
                             EXPECT_EQ(thread, 0) << "the caller";
                             return affinity_of(1500, bytes, cpus);
                         }),
              1);
    EXPECT_EQ(bound_node(kernel, [](pid_t, std::size_t bytes,
                                    cpu_set_t* cpus) noexcept { return affinity_of(1, bytes, cpus); }),
              -1);
    EXPECT_EQ(bound_node(kernel, refused), -1);
}

TEST_F(Threads, ThatHaveEndedAreLeftOut) {
    const ThreadBinding binding = look({3, 7});
    EXPECT_EQ(binding.threads, 1);
    EXPECT_EQ(binding.unknown, 0);
}

TEST_F(Threads, OfWhichNothingIsKnownAreSaidSo) {
    const ThreadBinding some = look({3, 9});
    EXPECT_EQ(some.threads, 1);
    EXPECT_EQ(some.unknown, 1);
    EXPECT_EQ(some.error, EPERM);
    const ThreadBinding none = look({3, 9}, refused);
    EXPECT_EQ(none.threads, 0);
    EXPECT_EQ(none.unknown, 2);
    const ThreadBinding no_folder = record_threads(kernel, "/does/not/exist", affinity_of);
    EXPECT_EQ(no_folder.threads, 0);
    EXPECT_EQ(no_folder.error, ENOENT);
}

} // namespace
} // namespace homing::threads_tests
