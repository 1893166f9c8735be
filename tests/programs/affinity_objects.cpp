// Tasks with the affinity clause whose private data are objects: built once, destroyed once, after the task;
// exceptions that stay in the task; constructors of private data that create tasks themselves.
#include "core.h"

#include <atomic>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::atomic<long> alive{0};
std::atomic<long> made{0};

/// Knows its own address: a copy by bytes shows.
struct Tracked {
    explicit Tracked(int number) : value(number), self(this) { count(); }
    Tracked(const Tracked& other) : value(other.value), self(this) {
        expect(other.self == &other, "copied from a live object");
        count();
    }
    Tracked& operator=(const Tracked&) = delete;
    ~Tracked() {
        expect(self == this, "destroyed where it was built, once");
        self = nullptr;
        --alive;
    }
    static void count() {
        ++alive;
        ++made;
    }
    int value;
    Tracked* self;
};

/// Its copy submits tasks with hints of their own, between the hint and the submission of the task that it is
/// for.
struct Spawning {
    explicit Spawning(double* where, std::atomic<long>* sum) : at(where), ran(sum) {}
    Spawning(const Spawning& other) : at(other.at), ran(other.ran) {
        double* p = at;
        std::atomic<long>* r = ran;
#pragma omp task affinity(p[0 : 512]) firstprivate(r)
        *r += 1;
    }
    double* at;
    std::atomic<long>* ran;
};

constexpr int blocks = 64;
constexpr int length = 4096;

} // namespace

int main() {
    std::vector<double> data(blocks * length, 1.0);
    std::atomic<long> total{0};
    std::atomic<long> caught{0};
    std::atomic<long> spawned{0};
    for (int round = 0; round < 5; ++round) {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 4000; ++i) {
            double* p = &data[static_cast<std::size_t>(i % blocks) * length];
            const Tracked tracked(i);
            const std::string text =
                "a text that is too long for the small buffer, number " + std::to_string(i);
            const std::list<int> numbers{i, i + 1, i + 2};
            const auto shared = std::make_shared<int>(i);
#pragma omp task affinity(p[0 : length]) firstprivate(tracked, text, numbers, shared, i) shared(total, caught)
            {
                expect(tracked.self == &tracked && tracked.value == i, "the object is this task's own");
                expect(text.ends_with(" " + std::to_string(i)), "the text is this task's own");
                expect(numbers.front() == i && numbers.back() == i + 2 && numbers.size() == 3,
                       "and the list");
                try {
                    if (i % 10 == 0) throw std::runtime_error(text);
                    total += *shared;
                } catch (const std::runtime_error& error) {
                    expect(error.what() == text, "an exception stays in its task");
                    ++caught;
                }
            }
            if (i % 20 == 0) {
                const Spawning spawning(p, &spawned);
#pragma omp task affinity(p[0 : length]) firstprivate(spawning)
                *spawning.ran += 1;
            }
        }
        expect(alive == 0, "every object is gone after the region");
    }
    std::printf("total %ld, caught %ld, made %ld, spawned %ld\n", total.load(), caught.load(), made.load(),
                spawned.load());
    return core_wrong != 0;
}
