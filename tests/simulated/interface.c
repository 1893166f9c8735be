// homing.h on a described machine: what the calls tell is that machine's. interface NODES; a thread a node.
// Prints a line where a call is wrong, and "done".
#define _GNU_SOURCE
#include <homing/homing.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_nodes = 8, page = 4096, part_pages = 16, part = part_pages * page };

static void expect(long is, long wanted, const char* what) {
    if (is != wanted) printf("%s: %ld instead of %ld\n", what, is, wanted);
}

static int nodes;
static char* memory;
static int worked[most_nodes];

static void work(intptr_t block, void* data) {
    (void)data;
    expect(homing_domain_here(HOMING_BY_NODE), block, "the domain that works on a block");
    for (long i = 0; i < part; i += 64)
        memory[block * part + i] += 1;
#pragma omp atomic
    ++worked[block];
}

static int home(int block) {
    int found[part_pages];
    homing_where(memory + (long)block * part, part, found, part_pages);
    for (int i = 1; i < part_pages; ++i)
        if (found[i] != found[0]) return -2;
    return found[0];
}

static void queues(void) {
    // A thread of another domain takes a block only where more than so many wait.
    homing_queues_t* parts = homing_queues_create("parts", HOMING_BY_NODE, nodes);
    for (int block = 0; block < nodes; ++block)
        homing_queues_put_at(parts, block, memory + (long)block * part, part);
    for (int domain = 0; domain < nodes; ++domain)
        expect((long)homing_queues_waiting(parts, domain), 1, "blocks of a domain");
#pragma omp parallel num_threads(nodes)
    homing_queues_run(parts, work, NULL);
    uint64_t at_home = 0, elsewhere = 0;
    homing_queues_taken(parts, &at_home, &elsewhere);
    expect((long)at_home, nodes, "blocks that were taken at home");
    expect((long)elsewhere, 0, "blocks that were taken elsewhere");
    for (int block = 0; block < nodes; ++block)
        expect(worked[block], 1, "how often a block was worked on");
    expect(homing_queues_destroy(parts), HOMING_OK, "the end of the queues");
}

int main(int argc, char** argv) {
    nodes = argc > 1 ? atoi(argv[1]) : 4;
    const long bytes = (long)nodes * part;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(homing_domains(HOMING_BY_NODE), nodes, "domains by node");
    expect(homing_watch(memory, bytes, "mine"), HOMING_OK, "watch");
    expect(home(0), -1, "pages that nobody touched");
#pragma omp parallel num_threads(nodes)
    {
        const int self = omp_get_thread_num();
        unsigned node = 99;
        getcpu(NULL, &node);
        for (long i = 0; i < part; i += 64)
            memory[self * (long)part + i] = 1;
#pragma omp critical
        {
            expect((long)node, self, "the node of a thread");
            expect(homing_domain_here(HOMING_BY_NODE), self, "its domain");
        }
    }
    for (int block = 0; block < nodes; ++block) {
        expect(home(block), block, "the node of a part");
        expect(homing_domain_of(memory + (long)block * part, part), block, "its domain");
        expect(homing_domain_of_node(block), block, "the domain of a node");
    }
    expect(homing_domain_of_node(nodes), HOMING_ANYWHERE, "the domain of a node that is not there");
    queues();

    expect(homing_place_on_node(memory, part, nodes - 1), HOMING_OK, "a part is sent to the last node");
    expect(home(0), nodes - 1, "its node");
    expect(homing_place_on_node(memory, part, nodes), HOMING_INVALID, "a node that is not there");
    expect(homing_place_round_robin(memory, bytes), HOMING_OK, "round robin");
    int found[part_pages];
    homing_where(memory, part, found, part_pages);
    for (int i = 0; i < part_pages; ++i)
        expect(found[i], i % nodes, "a page's node, round robin");

    homing_statistics_t told = {.struct_bytes = sizeof told};
    expect(homing_statistics(&told), HOMING_OK, "statistics");
    expect(told.nodes, nodes, "nodes of the statistics");
    expect(homing_iteration(), HOMING_OK, "an iteration");
    expect(homing_unwatch(memory), HOMING_OK, "the end of the watch");
    munmap(memory, bytes);
    puts("done");
    return 0;
}
