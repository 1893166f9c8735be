// A mutex that a thread holds across its fork(2), so that what it guards is whole in the child.
//
// A signal handler may fork while its thread is within the guarded work, or within another fork: it must not
// wait for itself then, and is told that what is guarded may be half done.
#pragma once

#include <atomic>
#include <mutex>

namespace homing {

class ForkMutex {
  public:
    void lock() noexcept {
        mutex_.lock();
        holder_.store(&this_thread, std::memory_order_relaxed);
    }
    void unlock() noexcept {
        holder_.store(nullptr, std::memory_order_relaxed);
        mutex_.unlock();
    }

    /// Before a fork, by the thread that forks. False: it is within the guarded work, which is not whole.
    bool lock_for_fork() noexcept {
        if (!held_by_this_thread())
            lock();
        else if (forks_ == 0)
            return false;
        ++forks_;
        return true;
    }
    /// After it, in parent and child. False: the fork does not hold the mutex, nothing was done.
    bool unlock_after_fork() noexcept {
        if (!held_for_fork()) return false;
        if (--forks_ == 0) unlock();
        return true;
    }
    /// Is what is guarded whole, and this thread's alone, because of its fork?
    bool held_for_fork() const noexcept { return held_by_this_thread() && forks_ > 0; }

  private:
    static constinit thread_local const char this_thread; ///< its address tells threads apart

    bool held_by_this_thread() const noexcept {
        return holder_.load(std::memory_order_relaxed) == &this_thread;
    }

    std::mutex mutex_;
    std::atomic<const void*> holder_{nullptr};
    int forks_ = 0; ///< of the holder that are under way, one within the other
};

inline constinit thread_local const char ForkMutex::this_thread = 0;

} // namespace homing
