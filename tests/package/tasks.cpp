// homing/tasks.hpp, by a project that says nothing of its C++: the installed target does.
#include <homing/tasks.hpp>

#include <cstdio>

int main() {
    homing::LocalityQueues<int> queues;
    double value = 1;
    queues.put(1, &value, sizeof value);
    int sum = 0;
    homing::run_omp_tasks(queues, [&](int block) { sum += block; });
    std::puts(sum == 1 ? "consumer: well" : "consumer: a task did not run");
    return sum == 1 ? 0 : 1;
}
