// Sizes of messages, in bytes. What a message has to carry is the protocol's; how it is written down is ours,
// 4 bytes a number, as on the 32-bit machines of TreadMarks. Headers of UDP or MPL are not in it.
#ifndef HOMING_APPS_DSM_WIRE_H
#define HOMING_APPS_DSM_WIRE_H

enum {
    WIRE_NUMBER = 4,
    WIRE_HEADER = 4 * WIRE_NUMBER, // kind, sender, serial number, length
    WIRE_RUN = WIRE_NUMBER,        // of a diff: where it begins and how long it is
    WIRE_WORD = 4                  // the grain of diffs: what is compared, and sent
};

// An interval: its process, its vector time, the number of its notices, and a page number for each.
static inline long wire_interval(int processes, long notices) {
    return WIRE_NUMBER * (2L + processes + notices);
}
static inline long wire_clock(int processes) { return (long)WIRE_NUMBER * processes; }
// Which page, and for each wanted diff its process and interval.
static inline long wire_diff_request(long diffs) { return WIRE_HEADER + WIRE_NUMBER * (1 + 2 * diffs); }
// Before each diff: its process, its interval, its length.
static inline long wire_diff(long bytes) { return 3L * WIRE_NUMBER + bytes; }
static inline long wire_page_request(void) { return WIRE_HEADER + WIRE_NUMBER; }
// The page, and up to where each process's changes are in it.
static inline long wire_page(int processes, long page_bytes) {
    return WIRE_HEADER + WIRE_NUMBER + wire_clock(processes) + page_bytes;
}
// The barrier or lock, and the sender's vector time; intervals follow in some.
static inline long wire_synchronisation(int processes) {
    return WIRE_HEADER + WIRE_NUMBER + wire_clock(processes);
}

#endif
