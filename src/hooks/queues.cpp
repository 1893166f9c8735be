// Locality queues for C and Fortran, and what homing/tasks.hpp asks about the machine.
#include "homing/tasks.hpp"

#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "tasks/domains.hpp"

namespace {

/// Exceptions (no memory) stay here.
template <class Work, class Result> Result guarded(Result failed, Work&& work) noexcept {
    const homing::KeptErrno kept;
    const homing::Inside inside;
    try {
        return work();
    } catch (...) {
        return failed;
    }
}

const homing::DomainTable& table(int by) {
    homing::Locality& here = homing::locality();
    return by == HOMING_BY_CACHE ? here.by_cache() : here.by_node();
}

} // namespace

struct homing_queues {
    homing::LocalityQueues<std::intptr_t> blocks;
};

extern "C" {

int homing_domains(int by) {
    return guarded(1, [&] { return table(by).count(); });
}
int homing_domain_here(int by) {
    return guarded(int{HOMING_ANYWHERE}, [&] { return table(by).here(); });
}
int homing_domain_of_node(int node) {
    return guarded(int{HOMING_ANYWHERE}, [&] { return homing::locality().of_node(node); });
}
int homing_domain_of(const void* start, size_t bytes) {
    return guarded(int{HOMING_ANYWHERE}, [&] {
        return homing::locality().of_memory(reinterpret_cast<homing::Address>(start), bytes);
    });
}

homing_queues_t* homing_queues_create(const char* name, int by, size_t keep) {
    return guarded(static_cast<homing_queues_t*>(nullptr), [&] {
        const homing::By kind = by == HOMING_BY_CACHE ? homing::By::cache : homing::By::node;
        return new homing_queues{homing::LocalityQueues<std::intptr_t>(
            {homing::domains_of_machine(kind), name ? name : "", keep})};
    });
}

int homing_queues_destroy(homing_queues_t* queues) {
    return guarded(int{HOMING_REFUSED}, [&] {
        if (!queues) return int{HOMING_OK};
        if (const std::string left = queues->blocks.left_over(); !left.empty()) {
            std::fprintf(stderr, "homing: %s\n", left.c_str());
            return int{HOMING_NOT_EMPTY};
        }
        delete queues;
        return int{HOMING_OK};
    });
}

size_t homing_queues_discard(homing_queues_t* queues) { return queues ? queues->blocks.discard() : 0; }

int homing_queues_put(homing_queues_t* queues, intptr_t block, int domain) {
    if (!queues || domain < HOMING_ANYWHERE || domain >= queues->blocks.domains()) return HOMING_INVALID;
    return guarded(int{HOMING_REFUSED}, [&] {
        queues->blocks.put(block, domain);
        return int{HOMING_OK};
    });
}

int homing_queues_put_at(homing_queues_t* queues, intptr_t block, const void* start, size_t bytes) {
    if (!queues || !queues->blocks.know_homes()) return HOMING_INVALID;
    return guarded(int{HOMING_REFUSED}, [&] {
        queues->blocks.put(block, start, bytes);
        return int{HOMING_OK};
    });
}

int homing_queues_take(homing_queues_t* queues, intptr_t* block) {
    if (!queues || !block) return 0;
    const std::optional<std::intptr_t> taken = queues->blocks.take();
    if (taken) *block = *taken;
    return taken.has_value();
}

// What `work` throws (it may be C++) passes through: these are called by name, not hooked in.
int homing_queues_run(homing_queues_t* queues, homing_work_t work, void* data) {
    if (!work) return HOMING_INVALID;
    return queues && queues->blocks.run_one([&](std::intptr_t block) { work(block, data); });
}
size_t homing_queues_drain(homing_queues_t* queues, homing_work_t work, void* data) {
    return queues && work ? queues->blocks.drain([&](std::intptr_t block) { work(block, data); }) : 0;
}

size_t homing_queues_waiting(const homing_queues_t* queues, int domain) {
    return queues ? queues->blocks.waiting(domain) : 0;
}
size_t homing_queues_waiting_all(const homing_queues_t* queues) {
    return queues ? queues->blocks.waiting() : 0;
}
void homing_queues_taken(const homing_queues_t* queues, uint64_t* at_home, uint64_t* elsewhere) {
    if (at_home) *at_home = queues ? queues->blocks.taken_at_home() : 0;
    if (elsewhere) *elsewhere = queues ? queues->blocks.taken_elsewhere() : 0;
}

} // extern "C"
