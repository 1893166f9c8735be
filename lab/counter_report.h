/* Writes the counts of a model as one JSON file; homing/lab/counts.py reads it and documents the fields. */
#ifndef HOMING_LAB_COUNTER_REPORT_H
#define HOMING_LAB_COUNTER_REPORT_H

#include "counter_model.h"

struct self_test {
    unsigned nodes_verified; /* nodes whose page the plugin saw where the guest's kernel had put it */
    unsigned mismatches;
};

/* True if anything was counted since the last reset. */
bool report_any(const struct model* model);

/* Returns NULL, or why the file could not be written (from errno). */
const char* report_write(const struct model* model, const struct self_test* self_test, const char* path);

#endif
