// A thread of homing's own, for what only time can tell: it sleeps, and works for a moment now and then. It
// is there only while it is needed.
//
// It must not be noticed. It takes none of the program's signals; faults find their way (SIGSEGV is never
// blocked while windows may be open), and so do the C library's own signals, for which setuid() would wait.
// It has a small stack. It ends by itself, so that a process whose main thread has left by pthread_exit()
// ends too. A child of fork() does not have it (abandon).
#pragma once

#include <atomic>
#include <cstddef>
#include <pthread.h>

namespace homing {

class HelperThread {
  public:
    /// Works; returns the seconds until it is to be called again, or a negative number to end.
    using Work = double (*)(void* self) noexcept;

    HelperThread() = default;
    HelperThread(const HelperThread&) = delete;
    HelperThread& operator=(const HelperThread&) = delete;

    /// Be there: the first call of `work` comes after so many seconds. One thread at a time may call it.
    /// False: it could not be made, and is not tried again.
    bool start(Work work, void* self, double seconds) noexcept;
    bool is_running() const noexcept { return state_.load(std::memory_order_acquire) == running; }
    /// [any thread, signal] It ends after the work that it is at, if any.
    void stop() noexcept;
    /// stop(), and wait until it has left the process, not for ever. Not by the thread itself.
    void stop_and_wait() noexcept;
    /// In the child of a fork: it is not there.
    void abandon() noexcept { state_.store(never, std::memory_order_release); }
    /// Is this thread (its number in /proc/self/task) one of these?
    static bool is_ours(int thread) noexcept;
    /// How many of these there are, about: one that begins or ends just now may be missing.
    static std::size_t count() noexcept;
    /// Its number in /proc/self/task, 0 where there is none.
    int id() const noexcept { return id_.load(std::memory_order_acquire); }

  private:
    enum State : int { none, running, ended, never };
    static void* main(void* self) noexcept;
    bool make() noexcept;
    bool sleep(double seconds) noexcept;
    void join() noexcept;

    std::atomic<int> state_{none};
    std::atomic<int> stopping_{0};
    std::atomic<int> id_{0};
    Work work_ = nullptr;
    void* self_ = nullptr;
    double seconds_ = 0;
    pthread_t thread_{};
};

} // namespace homing
