#include "virtual_time.h"

#include "app.h"

#include <stdio.h>
#include <string.h>

static const char* const NAMES[VIRTUAL_COSTS] = {
    [COST_WORK] = "work", [COST_FAULT] = "fault",   [COST_PROTECT] = "protect",     [COST_TWIN] = "twin",
    [COST_DIFF] = "diff", [COST_APPLY] = "apply",   [COST_ROUNDTRIP] = "roundtrip", [COST_SERVE] = "serve",
    [COST_BYTE] = "byte", [COST_CLIENT] = "client",
};

static struct virtual_time costs[VIRTUAL_COSTS];

void virtual_time_read(const char* name) {
    if (name == NULL) return;
    FILE* file = fopen(name, "re");
    if (file == NULL) app_error("the file of costs cannot be read");
    char word[32];
    struct virtual_time read;
    unsigned found = 0;
    while (fscanf(file, "%31s %lf %lf %lf", word, &read.of[0], &read.of[1], &read.of[2]) == 4) {
        int which = 0;
        while (which < VIRTUAL_COSTS && strcmp(NAMES[which], word) != 0)
            which++;
        if (which == VIRTUAL_COSTS) app_error("the file of costs has a cost that is not known");
        costs[which] = read;
        found |= 1U << (unsigned)which;
    }
    fclose(file);
    if (found != (1U << VIRTUAL_COSTS) - 1) app_error("the file of costs lacks a cost, or is malformed");
}

void virtual_add(struct virtual_time* clock, enum virtual_cost cost, double times) {
    for (int which = 0; which < VIRTUAL_CLOCKS; which++)
        clock->of[which] += costs[cost].of[which] * times;
}

void virtual_wait(struct virtual_time* clock, const struct virtual_time* other) {
    for (int which = 0; which < VIRTUAL_CLOCKS; which++)
        if (other->of[which] > clock->of[which]) clock->of[which] = other->of[which];
}
