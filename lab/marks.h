/* Guest addresses by which programs speak to the counter plugin. A user-space store there is the message; its
 * value is not seen.
 *
 * Programs need only the first page: map one page at HOMING_MARK_PAGE (MAP_FIXED_NOREPLACE) and store 8 bytes
 * to offset 8 * phase. Phases: 0 = do not count, 1 = initialisation, 2 = first half of the iterations, 3 =
 * second half, up to 63. */
#ifndef HOMING_LAB_MARKS_H
#define HOMING_LAB_MARKS_H

#define HOMING_MARK_PAGE 0x5eed00000000ul    /* offset 8 * phase: the phase that begins */
#define HOMING_CONTROL_PAGE 0x5eed00001000ul /* offset 0: write the counts out and begin again */
#define HOMING_SELF_TEST_PAGE                                                                                \
    0x5eed00010000ul /* + 4096 * node: a page that lies on this node, stored to by a CPU of this node */
#define HOMING_MARK_AREA_SHIFT 20 /* all of them lie in one MiB */
#define HOMING_PHASES 64

#endif
