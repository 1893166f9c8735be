// The rows of a record file. Each row is 128 bytes, begins with its kind, and is described in the file's own
// header, so that readers need nothing but the file. Rows are only appended; the last state wins.
//
// HOMING_ROW_FIELDS lists every row type once: the structs, and the description in the header, come from it.
// Text longer than a field is stored in `text` rows and referred to by its id (0: none).
#pragma once

#include <cstddef>
#include <cstdint>

namespace homing::record {

inline constexpr std::size_t row_bytes = 128;

// ROW(kind number, name, fields) with FIELD(type, name) and ARRAY(type, name, length)
// Times are seconds since the start of the process's record (monotonic clock).
#define HOMING_ROWS(ROW, FIELD, ARRAY)                                                                       \
    /* a piece of a text: bytes of the text `id` at `offset` */                                              \
    ROW(1, text, FIELD(u32, id) FIELD(u32, offset) FIELD(u32, total) ARRAY(char, bytes, 112))                \
    /* a fact of the run: key and value are text ids, e.g. source, binding, mechanism, end */                \
    ROW(2, fact, FIELD(u32, key) FIELD(f64, time) FIELD(u32, value))                                         \
    /* what the user should know: level 1 note, 2 warning, 3 something was not done */                       \
    ROW(3, message, FIELD(u32, text) FIELD(f64, time) FIELD(u32, level) FIELD(u32, repeats))                 \
    /* a NUMA node */                                                                                        \
    ROW(4, node,                                                                                             \
        FIELD(i32, index) FIELD(u64, memory_bytes) FIELD(u64, free_bytes) FIELD(i32, cpus)                   \
            FIELD(i32, target) FIELD(i32, position))                                                         \
    /* distances from node `from` to nodes first..first+7 */                                                 \
    ROW(5, distance, FIELD(i32, from) FIELD(i32, first) FIELD(i32, count) ARRAY(f32, to, 8))                 \
    /* a memory area: kind 1 static, 2 heap, 3 named, 4 segment; name, object, origin objects are text ids;  \
     */                                                                                                      \
    /* order: of allocation; offset: of a static area from its object's first mapped page; */                \
    /* origin[i] is a code offset in object origin_object[i] (return address); blocks: of one origin and     \
     */                                                                                                      \
    /* size, side by side, that are one area */                                                              \
    ROW(6, area,                                                                                             \
        FIELD(u32, id) FIELD(u64, begin) FIELD(u64, bytes) FIELD(u32, kind) FIELD(u32, name)                 \
            FIELD(u32, object) FIELD(u32, granule) FIELD(f64, time) ARRAY(u64, origin, 4)                    \
                ARRAY(u32, origin_object, 4) FIELD(u32, blocks) FIELD(u64, order) FIELD(u64, offset))        \
    ROW(7, area_end, FIELD(u32, id) FIELD(f64, time))                                                        \
    /* pages of an area on each node, nodes first..first+7 by position; when: 1 found, 2 now, 3 at the end;  \
     */                                                                                                      \
    /* absent: not populated; pages are base pages; sampled 1: scaled from a sample */                       \
    ROW(8, placement,                                                                                        \
        FIELD(u32, area) FIELD(f64, time) FIELD(u32, when) FIELD(u32, first) FIELD(u32, sampled)             \
            FIELD(u32, iteration) ARRAY(u64, pages, 8) FIELD(u64, absent))                                   \
    /* one outer iteration; state: 1 searching 2 observing 3 settled; */                                     \
    /* basis: 1 period 2 anchor 3 barriers 4 time 5 call 6 guess */                                          \
    ROW(9, iteration,                                                                                        \
        FIELD(u32, number) FIELD(f64, time) FIELD(f64, seconds) FIELD(u32, regions) FIELD(u32, state)        \
            FIELD(u32, basis) FIELD(u64, references) FIELD(u64, moved) FIELD(f64, overhead_seconds))         \
    /* a parallel region: its outlined function as an offset in an object */                                 \
    ROW(10, region,                                                                                          \
        FIELD(u32, id) FIELD(u64, offset) FIELD(u32, object) FIELD(u64, count) FIELD(f64, seconds)           \
            FIELD(u32, symbol))                                                                              \
    /* a batch of moves of one area; errors: refused pages by errno in rows of kind refusal */               \
    ROW(11, move,                                                                                            \
        FIELD(u32, area) FIELD(f64, time) FIELD(u64, wanted) FIELD(u64, moved) FIELD(u64, refused)           \
            FIELD(u64, bytes) FIELD(f64, seconds) FIELD(f64, longest_call_seconds) FIELD(u32, calls)         \
                FIELD(u32, iteration) FIELD(u32, reason))                                                    \
    ROW(12, refusal, FIELD(u32, area) FIELD(i32, error) FIELD(u64, pages) FIELD(u32, iteration))             \
    /* sampled references of an area: node of the thread (position) x home nodes first..first+7; scaled to   \
     * lines */                                                                                              \
    ROW(13, references,                                                                                      \
        FIELD(u32, area) FIELD(u32, iteration) FIELD(u32, from) FIELD(u32, first) ARRAY(f64, to, 8)          \
            FIELD(f64, time))                                                                                \
    /* what was inferred: kind 0 none 1 block 2 cyclic 3 shared 4 mixed; pages wanted elsewhere; cold 1:     \
     * they stay, because the program has named other memory as hot */                                       \
    ROW(14, ownership,                                                                                       \
        FIELD(u32, area) FIELD(u32, iteration) FIELD(f64, time) FIELD(u32, kind) FIELD(f64, confidence)      \
            FIELD(u64, samples) FIELD(u64, wanted) FIELD(u32, cold))                                         \
    /* what the guard said: estimated ns of remote accesses so far and of the move; permitted 0 or 1 */      \
    ROW(15, guard,                                                                                           \
        FIELD(u32, area) FIELD(u32, iteration) FIELD(f64, time) FIELD(f64, remote_ns) FIELD(f64, move_ns)    \
            FIELD(u32, permitted))                                                                           \
    /* a thread that was seen in a region: node -1 unbound */                                                \
    ROW(16, thread, FIELD(u32, thread) FIELD(i32, node) FIELD(i32, cpu) FIELD(u32, bound) FIELD(f64, time))  \
    /* memory that is not watched; what: text */                                                             \
    ROW(17, unwatched, FIELD(u32, what) FIELD(u64, begin) FIELD(u64, bytes))                                 \
    /* where homing's own time went, cumulative; the newest row counts */                                    \
    ROW(18, overhead,                                                                                        \
        FIELD(f64, time) FIELD(f64, observing) FIELD(f64, deciding) FIELD(f64, moving) FIELD(f64, hooks)     \
            FIELD(u64, faults) FIELD(u64, region_events) FIELD(u64, armed) FIELD(u64, touches)               \
                FIELD(u64, calls))                                                                           \
    /* the process ended in order; status not known to us */                                                 \
    ROW(19, end,                                                                                             \
        FIELD(f64, time) FIELD(f64, parallel_seconds) FIELD(u32, iterations) FIELD(u32, settled_at)          \
            FIELD(u32, period) FIELD(u64, live_areas) FIELD(u64, dropped_areas))                             \
    /* what the simulator counted in a scope: 0 the run, 1 an iteration, 2 a region, 3 an area, 4 a place in \
     */                                                                                                      \
    /* the code; id: number of the iteration, id of the area, else an index; regions and places of code have \
     */                                                                                                      \
    /* an offset in an object; entries: how often the scope was entered */                                   \
    ROW(20, counted,                                                                                         \
        FIELD(u32, scope) FIELD(u32, id) FIELD(u32, object) FIELD(u32, symbol) FIELD(u64, offset)            \
            FIELD(u64, entries) FIELD(u64, accesses) FIELD(u64, invalidation_misses) FIELD(u64, upgrades)    \
                FIELD(u64, shared_hits) FIELD(u64, oracle_remote))                                           \
    /* misses in a scope by threads on node `from`, served by nodes first..first+7 (rows of zeros are left   \
     */                                                                                                      \
    /* out) */                                                                                               \
    ROW(21, misses, FIELD(u32, scope) FIELD(u32, id) FIELD(u32, from) FIELD(u32, first) ARRAY(u64, to, 8))   \
    /* the simulated machine's pages that were moved, and calls that moved them */                           \
    ROW(22, simulated, FIELD(u64, moved_pages) FIELD(u64, move_calls) FIELD(u64, page_bytes))                \
    /* the simulated kernel's NUMA balancing: how often a piece of memory was marked, hint faults, and pages \
     */                                                                                                      \
    /* that they moved */                                                                                    \
    ROW(23, balanced, FIELD(u64, scans) FIELD(u64, hint_faults) FIELD(u64, moved_pages))                     \
    /* affinity clauses: hints given, honoured (they decided the queue), of these taken by a thread of the   \
     * data's domain or by another one */                                                                    \
    ROW(24, tasks,                                                                                           \
        FIELD(f64, time) FIELD(u64, given) FIELD(u64, honoured) FIELD(u64, at_home) FIELD(u64, elsewhere))   \
    /* hints that were left to the runtime, by reason (text) */                                              \
    ROW(25, task_left, FIELD(u32, reason) FIELD(u64, count))                                                 \
    /* a loaded object that other rows refer to by its path: what tells one build of it from another, as     \
     */                                                                                                      \
    /* text: "build-id HEX", "file BYTES NANOSECONDS", or nothing where that is not known */                 \
    ROW(30, object, FIELD(u32, path) FIELD(u32, identity))                                                   \
    /* more of an area's return addresses: those from number `first` on, as in the row of the area */        \
    ROW(31, frames, FIELD(u32, area) FIELD(u32, first) ARRAY(u64, origin, 8) ARRAY(u32, origin_object, 8))   \
    /* by the launcher, after the end: where an instruction at an offset of an object comes from (what 1),   \
     * or                                                                                                    \
     */                                                                                                      \
    /* what is declared there (what 2); text: JSON (docs/record.md) */                                       \
    ROW(32, source, FIELD(u32, object) FIELD(u32, what) FIELD(u64, offset) FIELD(u32, text))                 \
    /* a rule of --areas, and how many areas (blocks) it has met */                                          \
    ROW(33, rule, FIELD(u32, text) FIELD(u64, areas))                                                        \
    /* touches of an area over the run so far, held against where its pages were before homing moved any     \
     */                                                                                                      \
    /* and against where they are (areas/remote_share.hpp: sums of weights w and remote shares r); the       \
     */                                                                                                      \
    /* newest row of an area counts; traffic: weight of the area among others */                             \
    ROW(40, estimate,                                                                                        \
        FIELD(u32, area) FIELD(u32, iteration) FIELD(u32, granules) FIELD(u32, by_access) FIELD(f64, time)   \
            FIELD(f64, touches) FIELD(f64, traffic) FIELD(f64, weight) FIELD(f64, weight2)                   \
                FIELD(f64, before) FIELD(f64, before1) FIELD(f64, before2) FIELD(f64, after)                 \
                    FIELD(f64, after1) FIELD(f64, after2))                                                   \
    /* one touch (--record-samples): granule of the area, kernel's thread number, its node's position, 1     \
     * where it wrote, region and                                                                            \
     */                                                                                                      \
    /* place in the iteration (~0: not known), source 1 pmu 2 hint-faults 3 windows, code as an offset in an \
     * object, byte of the granule */                                                                        \
    ROW(45, sample,                                                                                          \
        FIELD(u32, area) FIELD(u64, granule) FIELD(f64, time) FIELD(i32, thread) FIELD(i32, node)            \
            FIELD(u32, write) FIELD(u32, weight) FIELD(u32, region) FIELD(u32, place) FIELD(u32, iteration)  \
                FIELD(u32, source) FIELD(u32, object) FIELD(u64, offset) FIELD(u64, byte))                   \
    /* granules first..end-1 of an area lie on the node at a position; -1: they do not exist; when as in     \
     * placement */                                                                                          \
    ROW(46, homes,                                                                                           \
        FIELD(u32, area) FIELD(f64, time) FIELD(u32, when) FIELD(u64, first) FIELD(u64, end)                 \
            FIELD(i32, node))                                                                                \
    /* what is believed of an area's owners: family as model::Family has it, its probability, the share of   \
     * touches that knowing */                                                                               \
    /* all owners would make local, the distribution in the words of the directives (text id), granules      \
     * that were touched */                                                                                  \
    ROW(47, distribution,                                                                                    \
        FIELD(u32, area) FIELD(u32, iteration) FIELD(f64, time) FIELD(u32, family) FIELD(f64, probability)   \
            FIELD(f64, ignorance) FIELD(u32, words) FIELD(u64, known))                                       \
    /* the same by the touches of one place of the iteration, where an area's users differ by place: its     \
     * region (id), and do the pages follow this one? */                                                     \
    ROW(48, place_distribution,                                                                              \
        FIELD(u32, area) FIELD(u32, region) FIELD(u32, followed) FIELD(u32, touches) FIELD(u32, family)      \
            FIELD(f64, probability) FIELD(u32, words))                                                       \
    /* which node an area's sampled granules lie on, as runs of equal samples: those from granule first[i]   \
     * to */                                                                                                 \
    /* first[i + 1] at the node position node[i]; -1: not populated; count runs, the first one number `at`;  \
     */                                                                                                      \
    /* step: granules from one sample to the next (1: all were looked at); when as in placement */           \
    ROW(49, page_map,                                                                                        \
        FIELD(u32, area) FIELD(u32, when) FIELD(f64, time) FIELD(u32, at) FIELD(u32, count) FIELD(u32, step) \
            ARRAY(u32, first, 11) ARRAY(i32, node, 11))                                                      \
    /* a phase between two calls of record (its number among `phases`): pages of the hot areas that it       \
     * accessed, those that met the criterion, those of the plan, those that left it; calls of replay, and   \
     * pages that they moved and that went back; its references in the recorded iteration, how many of them  \
     * were remote, and with its plan; seconds and calls of the moves; the newest row of a number counts */  \
    ROW(51, phase,                                                                                           \
        FIELD(u32, number) FIELD(u32, phases) FIELD(f64, time) FIELD(u64, accessed) FIELD(u64, eligible)     \
            FIELD(u64, planned) FIELD(u64, refused) FIELD(u64, replays) FIELD(u64, moved) FIELD(u64, undone) \
                FIELD(u64, references) FIELD(u64, remote) FIELD(u64, remote_with_plan) FIELD(f64, seconds)   \
                    FIELD(u32, calls))                                                                       \
    /* of a phase that the program has not marked: its region (id), nanoseconds that moving its pages once   \
     * brings and takes (there and back), and whether they are moved; the newest row of a number counts */   \
    ROW(54, phase_worth,                                                                                     \
        FIELD(u32, number) FIELD(u32, region) FIELD(f64, gain) FIELD(f64, price) FIELD(u32, moves))          \
    /* the sampling mechanism so far: scans, pages that they looked at, of these those that were accessed    \
     * since the scan before, and those that met the criterion; base pages that moved, pages that stay       \
     * because they went to and fro; processor seconds of the thread; the newest row counts */               \
    ROW(52, sampling,                                                                                        \
        FIELD(f64, time) FIELD(u64, scans) FIELD(u64, scanned) FIELD(u64, accessed) FIELD(u64, eligible)     \
            FIELD(u64, moved) FIELD(u64, frozen) FIELD(f64, seconds))                                        \
    /* memory from begin to end was first touched by this code (offset in an object) and thread, which ran   \
     * on a node (position, -1: not known): sampled page faults, how many they stand for, and when the first \
     * and the last came; symbol: the exported function, where there is one */                               \
    ROW(53, first_touch,                                                                                     \
        FIELD(u32, object) FIELD(u64, offset) FIELD(u32, symbol) FIELD(u64, begin) FIELD(u64, end)           \
            FIELD(i32, thread) FIELD(i32, node) FIELD(u64, samples) FIELD(u64, faults) FIELD(f64, time)      \
                FIELD(f64, last))                                                                            \
    /* iterations that have ended; the only row that is written anew in its place, so that it is true also   \
     */                                                                                                      \
    /* of a process that was killed */                                                                       \
    ROW(50, progress, FIELD(u32, iterations))

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using f64 = double;
using f32 = float;

#define HOMING_FIELD(type, name) type name = {};
#define HOMING_ARRAY(type, name, length) type name[length] = {};
// The row's own kind is called `row`: `kind` is a field of some rows (of an area, of an ownership).
#define HOMING_ROW(number, label, fields)                                                                    \
    struct label##_row {                                                                                     \
        u32 row = number;                                                                                    \
        fields                                                                                               \
    };                                                                                                       \
    static_assert(sizeof(label##_row) <= row_bytes);
HOMING_ROWS(HOMING_ROW, HOMING_FIELD, HOMING_ARRAY)
#undef HOMING_ROW
#undef HOMING_ARRAY
#undef HOMING_FIELD

} // namespace homing::record
