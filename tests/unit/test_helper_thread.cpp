// A thread of homing's own: it works when it is due, takes no signal, ends by itself or when it is told.
#include "base/helper_thread.hpp"

#include "base/inside.hpp"

#include <atomic>
#include <csignal>
#include <pthread.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace homing::helper_thread_tests {
namespace {

using homing::HelperThread;

struct Job {
    std::atomic<int> calls{0};
    std::atomic<int> most{1 << 30};
    std::atomic<bool> inside{false};
    std::atomic<bool> takes_segv{false};
    std::atomic<bool> takes_usr1{true};
};

double work(void* self) noexcept {
    auto& job = *static_cast<Job*>(self);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    job.takes_segv = sigismember(&blocked, SIGSEGV) == 0;
    job.takes_usr1 = sigismember(&blocked, SIGUSR1) == 0;
    job.inside = homing::is_inside();
    return ++job.calls >= job.most ? -1 : 1e-3;
}

template <class Condition> bool comes_true(Condition&& condition) {
    for (int naps = 0; naps < 10000 && !condition(); ++naps)
        ::usleep(1000);
    return condition();
}

TEST(HelperThread, WorksWhenItIsDueAndTakesNoSignalOfTheProgram) {
    Job job;
    HelperThread helper;
    EXPECT_FALSE(helper.is_running());
    ASSERT_TRUE(helper.start(work, &job, 0));
    EXPECT_TRUE(comes_true([&] { return job.calls >= 3; }));
    EXPECT_NE(helper.id(), 0);
    EXPECT_NE(helper.id(), static_cast<int>(::gettid()));
    EXPECT_EQ(HelperThread::count(), 1u);
    EXPECT_TRUE(job.inside) << "what it allocates is homing's";
    EXPECT_TRUE(job.takes_segv);
    EXPECT_FALSE(job.takes_usr1);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGUSR1), 0) << "its maker's mask is as before";
    helper.stop_and_wait();
    EXPECT_FALSE(helper.is_running());
    const int calls = job.calls;
    ::usleep(5000);
    EXPECT_EQ(job.calls, calls);
    EXPECT_EQ(helper.id(), 0);
    EXPECT_EQ(HelperThread::count(), 0u);
    EXPECT_FALSE(helper.start(work, &job, 0)) << "it was told to go for good";
}

TEST(HelperThread, EndsByItselfAndMayComeAgain) {
    Job job;
    job.most = 2;
    HelperThread helper;
    ASSERT_TRUE(helper.start(work, &job, 0));
    EXPECT_TRUE(comes_true([&] { return !helper.is_running(); }));
    EXPECT_EQ(job.calls, 2);
    job.most = 5;
    ASSERT_TRUE(helper.start(work, &job, 0));
    EXPECT_TRUE(comes_true([&] { return !helper.is_running(); }));
    EXPECT_EQ(job.calls, 5);
    helper.stop_and_wait();
}

TEST(HelperThread, StopWakesItUp) {
    Job job;
    HelperThread helper;
    ASSERT_TRUE(helper.start(work, &job, 3600));
    helper.stop_and_wait();
    EXPECT_FALSE(helper.is_running());
    EXPECT_EQ(job.calls, 0);
}

} // namespace
} // namespace homing::helper_thread_tests
