#include "notices.h"

#include "memory.h"
#include "wire.h"

#include <stdlib.h>

struct records {
    int processes;
    struct interval* last[DSM_MOST_PROCESSES];
    struct notice** last_notice; // by page, then process
};

static struct records* records;

void notices_make(int processes, long pages) {
    records = arena_take(sizeof *records);
    records->processes = processes;
    records->last_notice = arena_take((size_t)pages * (size_t)processes * sizeof(struct notice*));
}

struct interval* interval_add(int process, const struct vector_clock* clock, const long* pages, long count) {
    struct interval* interval = arena_take(sizeof *interval);
    struct notice* notices = arena_take((size_t)count * sizeof *notices);
    *interval = (struct interval){.process = process,
                                  .index = clock->of[process],
                                  .clock = *clock,
                                  .notices = count,
                                  .first = notices,
                                  .before = records->last[process]};
    for (long which = 0; which < count; which++) {
        struct notice** last = &records->last_notice[pages[which] * records->processes + process];
        notices[which] = (struct notice){.interval = interval,
                                         .before = *last,
                                         .next = which + 1 < count ? &notices[which + 1] : NULL,
                                         .page = pages[which]};
        *last = &notices[which];
    }
    records->last[process] = interval;
    return interval;
}

struct interval* interval_up_to(int process, uint32_t index) {
    struct interval* interval = records->last[process];
    while (interval != NULL && interval->index > index)
        interval = interval->before;
    return interval;
}

struct notice* notice_up_to(long page, int process, uint32_t index) {
    struct notice* notice = records->last_notice[page * records->processes + process];
    while (notice != NULL && notice->interval->index > index)
        notice = notice->before;
    return notice;
}

long intervals_bytes(int process, const struct vector_clock* from, const struct vector_clock* to) {
    long bytes = 0;
    int first = process < 0 ? 0 : process, end = process < 0 ? records->processes : process + 1;
    for (int of = first; of < end; of++) {
        const struct interval* interval = interval_up_to(of, to->of[of]);
        for (; interval != NULL && interval->index > from->of[of]; interval = interval->before)
            bytes += wire_interval(records->processes, interval->notices);
    }
    return bytes;
}

bool clock_covers(const struct vector_clock* clock, const struct notice* notice) {
    return clock->of[notice->interval->process] >= notice->interval->index;
}

// Who had seen another's interval has a clock that is nowhere smaller, and larger somewhere.
static uint64_t weight(const struct notice* notice) {
    uint64_t sum = 0;
    for (int process = 0; process < records->processes; process++)
        sum += notice->interval->clock.of[process];
    return sum;
}

static int in_order(const void* left, const void* right) {
    const struct notice *a = *(struct notice* const*)left, *b = *(struct notice* const*)right;
    uint64_t first = weight(a), second = weight(b);
    if (first != second) return first < second ? -1 : 1;
    return a->interval->process - b->interval->process;
}

void notices_in_order(struct notice** notices, long count) {
    if (count > 1) qsort(notices, (size_t)count, sizeof(struct notice*), in_order);
}
