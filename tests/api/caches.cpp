// Memory is at home on nodes: queues by cache take no block by its memory.
#include <homing/tasks.hpp>

int main() {
    homing::LocalityQueues<int> queues(homing::By::cache);
    try {
        queues.put(1, &queues, sizeof queues);
    } catch (const std::invalid_argument& refused) {
        std::puts(refused.what());
        return queues.waiting() != 0;
    }
    return 1;
}
