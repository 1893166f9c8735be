#define _GNU_SOURCE
#include "counter_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every range of phases gets its own oracle while there are at most this many phases; beyond, only single
 * phases, ranges that end with the last phase, and the whole run: the work is pages x nodes x ranges. */
enum { ALL_RANGES_UP_TO = 8 };

struct range {
    unsigned first, last; /* positions in the list of phases that counted something */
    uint64_t misses;
    uint64_t oracle_remote;
};

struct report {
    const struct model* model;
    unsigned phases[HOMING_PHASES]; /* those that counted something, ascending */
    unsigned phase_count;
    struct range* ranges;
    size_t range_count;
    uint64_t run_oracle_remote[HOMING_PHASES]; /* by position: remote misses with every page on its majority
                                                  node of the whole run */
};

static unsigned node_of_cpu(const struct model* model, unsigned cpu) {
    const unsigned node = cpu / model->options.cpus_per_node;
    return node < model->options.nodes ? node : model->options.nodes - 1;
}

static uint64_t sum_over_cpus(const struct model* model, size_t offset, unsigned phase) {
    uint64_t sum = 0;
    for (unsigned cpu = 0; cpu < model->options.vcpus; cpu++)
        sum += ((const uint64_t*)((const char*)&model->vcpus[cpu] + offset))[phase];
    return sum;
}
#define SUM(model, field, phase) sum_over_cpus((model), offsetof(struct vcpu, field), (phase))

bool report_any(const struct model* model) {
    for (unsigned phase = 1; phase < HOMING_PHASES; phase++)
        if (SUM(model, accesses, phase)) return true;
    return false;
}

static bool choose_ranges(struct report* report) {
    const unsigned n = report->phase_count;
    report->ranges = calloc((size_t)n * n + 1, sizeof *report->ranges);
    if (!report->ranges) return false;
    for (unsigned first = 0; first < n; first++)
        for (unsigned last = first; last < n; last++)
            if (n <= ALL_RANGES_UP_TO || first == last || last == n - 1)
                report->ranges[report->range_count++] = (struct range){.first = first, .last = last};
    return true;
}

/* The oracle's remote misses: every page lies on the node that misses on it most, within the range of phases.
 */
static void add_page(struct report* report, uint32_t slot) {
    const struct model* model = report->model;
    const unsigned nodes = model->options.nodes;
    uint64_t until[HOMING_PHASES + 1][MODEL_MAX_NODES] = {{0}}; /* sums over the phases before a position */
    for (unsigned position = 0; position < report->phase_count; position++) {
        memcpy(until[position + 1], until[position], sizeof until[0]);
        for (unsigned cpu = 0; cpu < model->options.vcpus; cpu++) {
            const uint32_t* misses = model->vcpus[cpu].page_misses[report->phases[position]];
            if (misses) until[position + 1][node_of_cpu(model, cpu)] += misses[slot];
        }
    }
    for (size_t i = 0; i < report->range_count; i++) {
        struct range* range = &report->ranges[i];
        uint64_t sum = 0, most = 0;
        for (unsigned node = 0; node < nodes; node++) {
            const uint64_t misses = until[range->last + 1][node] - until[range->first][node];
            sum += misses;
            if (misses > most) most = misses;
        }
        range->misses += sum;
        range->oracle_remote += sum - most;
    }
    unsigned majority = 0;
    for (unsigned node = 1; node < nodes; node++)
        if (until[report->phase_count][node] > until[report->phase_count][majority]) majority = node;
    for (unsigned position = 0; position < report->phase_count; position++)
        for (unsigned node = 0; node < nodes; node++)
            if (node != majority)
                report->run_oracle_remote[position] += until[position + 1][node] - until[position][node];
}

static bool prepare(struct report* report, const struct model* model) {
    memset(report, 0, sizeof *report);
    report->model = model;
    for (unsigned phase = 1; phase < HOMING_PHASES; phase++)
        if (SUM(model, accesses, phase)) report->phases[report->phase_count++] = phase;
    if (!choose_ranges(report)) return false;
    uint32_t pages = __atomic_load_n(&model->next_slot, __ATOMIC_ACQUIRE);
    if (pages > model->options.max_pages) pages = model->options.max_pages;
    for (uint32_t slot = 0; slot < pages; slot++)
        add_page(report, slot);
    return true;
}

static void write_matrix(const struct model* model, unsigned phase, FILE* file) {
    const unsigned nodes = model->options.nodes;
    uint64_t matrix[MODEL_MAX_NODES][MODEL_MAX_NODES] = {{0}};
    uint64_t unknown = 0;
    for (unsigned cpu = 0; cpu < model->options.vcpus; cpu++) {
        for (unsigned home = 0; home < nodes; home++)
            matrix[node_of_cpu(model, cpu)][home] += model->vcpus[cpu].misses[phase][home];
        unknown += model->vcpus[cpu].misses[phase][MODEL_UNKNOWN_NODE];
    }
    fprintf(file, "      \"misses\": [");
    for (unsigned node = 0; node < nodes; node++) {
        fprintf(file, "%s[", node ? ", " : "");
        for (unsigned home = 0; home < nodes; home++)
            fprintf(file, "%s%" PRIu64, home ? ", " : "", matrix[node][home]);
        fprintf(file, "]");
    }
    fprintf(file, "],\n      \"unknown_home_misses\": %" PRIu64 ",\n", unknown);
}

static void write_phase(const struct report* report, unsigned position, FILE* file) {
    const struct model* model = report->model;
    const unsigned phase = report->phases[position];
    fprintf(file, "    {\n      \"phase\": %u,\n      \"accesses\": %" PRIu64 ",\n", phase,
            SUM(model, accesses, phase));
    write_matrix(model, phase, file);
    fprintf(file, "      \"invalidation_misses\": %" PRIu64 ",\n", SUM(model, invalidation_misses, phase));
    fprintf(file, "      \"upgrades\": %" PRIu64 ",\n", SUM(model, upgrades, phase));
    fprintf(file, "      \"untracked_misses\": %" PRIu64 ",\n", SUM(model, untracked_misses, phase));
    fprintf(file, "      \"run_oracle_remote\": %" PRIu64 "\n    }", report->run_oracle_remote[position]);
}

static void write_report(const struct report* report, const struct self_test* self_test, FILE* file) {
    const struct model* model = report->model;
    const struct model_options* options = &model->options;
    fprintf(file, "{\n  \"version\": 1,\n");
    fprintf(file, "  \"machine\": {\"nodes\": %u, \"cpus\": %u, \"cpus_per_node\": %u},\n", options->nodes,
            options->vcpus, options->cpus_per_node);
    fprintf(
        file,
        "  \"cache\": {\"kib\": %zu, \"ways\": %u, \"line\": %u, \"coherent\": %s, \"indexed\": \"virtual\", "
        "\"replacement\": \"LRU\", \"private_to\": \"cpu\"},\n",
        options->cache_bytes >> 10, options->ways, options->line_bytes, options->coherent ? "true" : "false");
    fprintf(file, "  \"self_test\": {\"nodes_verified\": %u, \"mismatches\": %u},\n",
            self_test->nodes_verified, self_test->mismatches);
    fprintf(file, "  \"pages\": %u,\n  \"phases\": [\n",
            __atomic_load_n(&model->next_slot, __ATOMIC_RELAXED));
    for (unsigned position = 0; position < report->phase_count; position++) {
        write_phase(report, position, file);
        fprintf(file, "%s\n", position + 1 < report->phase_count ? "," : "");
    }
    fprintf(file, "  ],\n  \"oracle\": [");
    for (size_t i = 0; i < report->range_count; i++) {
        const struct range* range = &report->ranges[i];
        fprintf(file,
                "%s\n    {\"first_phase\": %u, \"last_phase\": %u, \"misses\": %" PRIu64
                ", \"remote\": %" PRIu64 "}",
                i ? "," : "", report->phases[range->first], report->phases[range->last], range->misses,
                range->oracle_remote);
    }
    fprintf(file, "\n  ]\n}\n");
}

const char* report_write(const struct model* model, const struct self_test* self_test, const char* path) {
    struct report report;
    if (!prepare(&report, model)) return strerror(ENOMEM);
    FILE* file = fopen(path, "w");
    if (!file) {
        free(report.ranges);
        return strerror(errno);
    }
    write_report(&report, self_test, file);
    free(report.ranges);
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) return strerror(errno);
    return NULL;
}
