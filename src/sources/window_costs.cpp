#include "sources/window_costs.hpp"

#include "base/raw_calls.hpp"
#include "base/running_time.hpp"

#include <cstring>
#include <vector>

namespace homing {

void measure_windows(Kernel& kernel, Windows& windows, bool handled, double slowness, WindowPlan& plan) {
    constexpr std::size_t pages = 16;
    const std::size_t bytes = 2 * pages * page_bytes();
    void* memory = raw::map_memory(bytes);
    if (!memory) return;
    std::memset(memory, 1, bytes); // what does not exist is cheap to protect
    std::vector<Range> isolated;
    for (std::size_t i = 0; i < pages; ++i) {
        const Address begin = reinterpret_cast<Address>(memory) + 2 * i * page_bytes();
        isolated.push_back({begin, begin + page_bytes()});
    }
    const auto of_each = [](auto&& work) {
        const double before = thread_seconds();
        work();
        return (thread_seconds() - before) / static_cast<double>(pages);
    };
    const auto protect = [&](Access access) {
        return of_each([&] {
            for (const Range& page : isolated)
                kernel.protect(page, access);
        });
    };
    const double arming = protect(Access::none);
    const double giving_back = protect(Access::read_write);
    double fault = 0;
    const WatchedRange all{{isolated.front().begin, isolated.back().end}, page_bytes()};
    if (handled && windows.start({&all, 1}) && windows.open(isolated, [] { return true; }) == pages)
        fault = of_each([&] {
            for (const Range& page : isolated)
                *reinterpret_cast<volatile char*>(page.begin) = 2;
        });
    windows.close();
    std::vector<Reference> of_the_trial;
    windows.drain(of_the_trial);
    windows.forget_costs();
    raw::unmap(memory, bytes);
    plan.calibrate(arming, fault, fault > 0 ? giving_back : 0, slowness);
}

} // namespace homing
