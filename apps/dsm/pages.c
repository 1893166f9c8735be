#define _GNU_SOURCE
#include "pages.h"

#include "app.h"
#include "diff.h"
#include "faults.h"
#include "memory.h"
#include "wire.h"

#include <assert.h>
#include <string.h>

// Where a page comes from that a process has no copy of: the process that has all of them when it begins.
enum { MANAGER = 0 };

struct entry {
    enum memory_access access;
    bool copy;         // the process has one, valid or not
    bool exclusive;    // nobody else was ever given a copy: the manager writes as it likes, without notices
    bool dirty;        // written in the interval that has not ended
    bool to_protect;   // its protection has to follow `access` at the process's next turn
    void* twin;        // NULL: not written since the last diff
    struct notice* of; // the notice that the twin's diff will belong to; NULL: the interval has not ended
    struct vector_clock applied;
};

struct view {
    struct process process;
    struct entry* entries;
    long *dirty, dirties;
    long *to_protect, to_protects;
};

static struct view* views; // in the arena
static int count_of_processes;
static int self;
static bool eager_diffs;

void pages_make(int processes, long pages, bool eager) {
    count_of_processes = processes;
    eager_diffs = eager;
    views = arena_take((size_t)processes * sizeof *views);
    for (int process = 0; process < processes; process++) {
        struct view* view = &views[process];
        view->entries = arena_take((size_t)pages * sizeof *view->entries);
        view->dirty = arena_take((size_t)pages * sizeof *view->dirty);
        view->to_protect = arena_take((size_t)pages * sizeof *view->to_protect);
        for (long page = 0; process == MANAGER && page < pages; page++)
            view->entries[page] = (struct entry){.access = MEMORY_WRITE, .copy = true, .exclusive = true};
    }
}

struct process* pages_process(int process) { return &views[process].process; }

void pages_count(int process, enum dsm_count what, long times) {
    views[process].process.counts.of[what] += times;
}

void pages_message(int sender, long bytes) {
    pages_count(sender, DSM_MESSAGES, 1);
    pages_count(sender, DSM_BYTES, bytes);
}

static void spend(int process, enum virtual_cost cost, double times) {
    virtual_add(&views[process].process.time, cost, times);
}

static void set_access(int process, long page, enum memory_access access) {
    struct view* view = &views[process];
    struct entry* entry = &view->entries[page];
    if (entry->access == access) return;
    entry->access = access;
    pages_count(process, DSM_PROTECTIONS, 1);
    spend(process, COST_PROTECT, 1);
    if (process == self) {
        memory_protect(page, access);
    } else if (!entry->to_protect) {
        entry->to_protect = true;
        view->to_protect[view->to_protects++] = page;
    }
}

void pages_resume(int me) {
    struct view* view = &views[me];
    while (view->to_protects > 0) {
        long page = view->to_protect[--view->to_protects];
        view->entries[page].to_protect = false;
        memory_protect(page, view->entries[page].access);
    }
}

// The process's diff for the notice is made and its twin given up: its next write will be a fault again.
static void make_diff(int process, struct notice* notice) {
    struct entry* entry = &views[process].entries[notice->page];
    assert(entry->twin != NULL && entry->of == notice && !entry->dirty);
    static char made[DIFF_MOST_BYTES];
    size_t bytes = diff_make(memory_copy(process, notice->page), entry->twin, made);
    void* kept = arena_take(bytes + 1);
    memcpy(kept, made, bytes);
    notice->diff = kept;
    notice->diff_bytes = (uint32_t)bytes;
    notice->holders |= 1U << (unsigned)process;
    arena_page_back(entry->twin);
    entry->twin = NULL;
    entry->of = NULL;
    pages_count(process, DSM_DIFFS, 1);
    pages_count(process, DSM_DIFF_BYTES, (long)bytes);
    spend(process, COST_DIFF, 1);
    if (entry->access == MEMORY_WRITE) set_access(process, notice->page, MEMORY_READ);
}

void pages_end_interval(int process) {
    struct view* view = &views[process];
    if (view->dirties == 0) return;
    struct vector_clock* clock = &view->process.clock;
    clock->of[process]++;
    struct interval* interval = interval_add(process, clock, view->dirty, view->dirties);
    for (struct notice* notice = interval->first; notice != NULL; notice = notice->next) {
        struct entry* entry = &view->entries[notice->page];
        entry->dirty = false;
        entry->of = notice;
        entry->applied.of[process] = interval->index;
        if (eager_diffs) make_diff(process, notice);
    }
    pages_count(process, DSM_INTERVALS, 1);
    pages_count(process, DSM_NOTICES, view->dirties);
    view->dirties = 0;
}

void pages_hear_of(int me, const struct vector_clock* limit) {
    struct view* view = &views[me];
    struct vector_clock* clock = &view->process.clock;
    for (int process = 0; process < count_of_processes; process++) {
        if (process == me) continue;
        const struct interval* interval = interval_up_to(process, limit->of[process]);
        for (; interval != NULL && interval->index > clock->of[process]; interval = interval->before)
            for (const struct notice* notice = interval->first; notice != NULL; notice = notice->next) {
                struct entry* entry = &view->entries[notice->page];
                if (entry->twin != NULL) make_diff(me, entry->of);
                if (!entry->copy || entry->access == MEMORY_NONE) continue;
                set_access(me, notice->page, MEMORY_NONE);
                pages_count(me, DSM_INVALIDATED, 1);
            }
    }
    for (int process = 0; process < count_of_processes; process++)
        if (limit->of[process] > clock->of[process]) clock->of[process] = limit->of[process];
}

// The other process is asked and answers; several can be asked at once: only the first one's way counts.
static void ask(int me, int other, long request, long answer, bool first) {
    pages_message(me, request);
    pages_message(other, answer);
    if (first)
        spend(me, COST_ROUNDTRIP, 1);
    else
        spend(me, COST_SERVE, 1); // its answer, too, interrupts
    spend(me, COST_BYTE, (double)(request + answer));
    spend(other, COST_SERVE, 1);
}

static void fetch_page(int me, long page) {
    struct entry *mine = &views[me].entries[page], *theirs = &views[MANAGER].entries[page];
    assert(me != MANAGER && theirs->copy);
    memcpy(memory_copy(me, page), memory_copy(MANAGER, page), DSM_PAGE_BYTES);
    mine->copy = true;
    mine->applied = theirs->applied;
    // What the manager has written since its last diff is in the page, but its notice may come yet.
    if (theirs->of != NULL) mine->applied.of[MANAGER] = theirs->of->interval->index - 1;
    if (theirs->exclusive) {
        theirs->exclusive = false;
        set_access(MANAGER, page, MEMORY_READ);
    }
    pages_count(me, DSM_PAGES_FETCHED, 1);
    ask(me, MANAGER, wire_page_request(), wire_page(count_of_processes, DSM_PAGE_BYTES), true);
}

enum { MOST_PENDING = 4096 };

// The notices that the process knows and whose diffs are not in its page.
static long pending_notices(int me, long page, struct notice** pending) {
    const struct view* view = &views[me];
    long count = 0;
    for (int process = 0; process < count_of_processes; process++) {
        if (process == me) continue;
        uint32_t applied = view->entries[page].applied.of[process];
        struct notice* notice = notice_up_to(page, process, view->process.clock.of[process]);
        for (; notice != NULL && notice->interval->index > applied; notice = notice->before) {
            if (count == MOST_PENDING) app_error("too many diffs are missing in a page");
            pending[count++] = notice;
        }
    }
    return count;
}

// Whom to ask for a diff. Who changed the page after having heard of another's change has that one's diff, so
// only those are asked whose last change no other writer had heard of. `pending` is in order: the last ones
// have heard most.
static int holder_of(const struct notice* wanted, struct notice* const* pending, long count) {
    const int writer = wanted->interval->process;
    for (long which = count - 1; which >= 0; which--) {
        const struct interval* interval = pending[which]->interval;
        const int other = interval->process;
        if (other == writer) return writer;
        if ((wanted->holders >> (unsigned)other & 1) != 0 && clock_covers(&interval->clock, wanted))
            return other;
    }
    return writer;
}

static void fetch_diffs(int me, long page, bool first) {
    struct notice* pending[MOST_PENDING];
    long count = pending_notices(me, page, pending);
    if (count == 0) return;
    notices_in_order(pending, count);
    long request[DSM_MOST_PROCESSES] = {0}, answer[DSM_MOST_PROCESSES] = {0};
    for (long which = 0; which < count; which++) {
        struct notice* notice = pending[which];
        if (notice->diff != NULL) continue;
        make_diff(notice->interval->process, notice);
        spend(me, COST_DIFF, 1); // waited for
    }
    for (long which = 0; which < count; which++) {
        int holder = holder_of(pending[which], pending, count);
        request[holder]++;
        answer[holder] += wire_diff((long)pending[which]->diff_bytes);
    }
    for (int process = 0; process < count_of_processes; process++) {
        if (request[process] == 0) continue;
        ask(me, process, wire_diff_request(request[process]), WIRE_HEADER + answer[process], first);
        first = false;
    }
    for (long which = 0; which < count; which++) {
        struct notice* notice = pending[which];
        diff_apply(notice->diff, notice->diff_bytes, memory_copy(me, page));
        notice->holders |= 1U << (unsigned)me;
        views[me].entries[page].applied.of[notice->interval->process] = notice->interval->index;
        spend(me, COST_APPLY, notice->diff_bytes);
    }
    pages_count(me, DSM_DIFFS_APPLIED, count);
}

static void make_twin(int me, long page) {
    struct view* view = &views[me];
    struct entry* entry = &view->entries[page];
    assert(entry->twin == NULL);
    entry->twin = arena_page();
    memcpy(entry->twin, memory_copy(me, page), DSM_PAGE_BYTES);
    entry->dirty = true;
    view->dirty[view->dirties++] = page;
    pages_count(me, DSM_TWINS, 1);
    spend(me, COST_TWIN, 1);
}

static void fault(long page, bool writing) {
    struct entry* entry = &views[self].entries[page];
    pages_count(self, writing ? DSM_WRITE_FAULTS : DSM_READ_FAULTS, 1);
    spend(self, COST_FAULT, 1);
    if (entry->access == MEMORY_NONE) {
        bool first = entry->copy;
        if (!entry->copy) fetch_page(self, page);
        fetch_diffs(self, page, first);
    }
    if (writing && entry->twin == NULL) make_twin(self, page);
    set_access(self, page, writing ? MEMORY_WRITE : MEMORY_READ);
}

void pages_join(int me) {
    self = me;
    memory_map_own(me, me == MANAGER ? MEMORY_WRITE : MEMORY_NONE);
    faults_catch(fault);
}
