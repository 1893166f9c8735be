/* The counter's model as a library of its own, for tests/python/test_lab_model.py: no QEMU, homes given by
 * the caller. */
#include "../../lab/counter_model.c"
#include "../../lab/counter_report.c"

struct access {
    uint64_t address;
    uint32_t cpu;
    uint32_t phase;
    uint32_t store;
    uint32_t home;
};

static struct model model;

const char* shim_create(const struct model_options* options) { return model_create(&model, options); }

/* hits[i] = 1 if access i hit. */
void shim_run(const struct access* accesses, size_t count, uint8_t* hits) {
    for (size_t i = 0; i < count; i++) {
        const struct access* a = &accesses[i];
        model.vcpus[a->cpu].accesses[a->phase]++;
        hits[i] = model_access(&model, a->cpu, a->phase, a->address >> model.line_shift, a->store != 0);
        if (!hits[i]) model_record_miss(&model, a->cpu, a->phase, a->address >> MODEL_PAGE_SHIFT, a->home);
    }
}

const char* shim_report(const char* path) {
    const struct self_test none = {0, 0};
    return report_write(&model, &none, path);
}

void shim_reset(void) { model_reset(&model); }
