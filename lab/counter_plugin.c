/* homing's hardware counter: a QEMU TCG plugin that counts user-space cache misses by (node of the CPU, home
 * node of the page).
 *
 *   -plugin libhoming_counter_plugin.so,out=PREFIX,nodes=4,cpus_per_node=1,memory=1024
 *           [,cache=1024][,ways=16][,line=64][,coherent=on][,pages=2097152]
 *
 * memory: MiB of each node, whose RAM must be memory backends of equal size, created in node order. cache:
 * KiB private to each virtual CPU. PREFIX-0.json, PREFIX-1.json, ... are written, one for each "dump" control
 * store (marks.h), and a last one at exit if something was counted since.
 *
 * What is counted: every load and store that user-space instructions execute while a phase other than 0 is
 * marked, as TCG executes them (a 32-byte vector load is four accesses to one line), of whatever process
 * runs. Kernel code is not instrumented: what the kernel reads or writes for a system call is not counted.
 * The home of a page is looked up at the moment of the miss, so migration is seen. QEMU 7.2 (mended in 8.0)
 * calls an instruction's callback also for what comes after it left the instruction for the kernel, where
 * that accesses memory in C: a context switch saves registers so, an interrupt's return reads them. So
 * instructions that call the kernel are not instrumented, and no access to the kernel's half of the addresses
 * counts.
 *
 * QEMU 7.2 tells a RAM address by the place of its memory block in QEMU's own address space: block offset
 * plus offset in the machine's RAM, which for equal blocks in creation order is 2 * node * size + offset. The
 * guest's self-test (homing-mark self-test) stores to a page on every node, from a CPU of the node; the
 * result is part of each report, and the lab refuses to count unless all nodes agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter_report.h"
#include "marks.h"
#include "qemu_plugin_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

enum { LARGEST_ACCESS = 16 }; /* bytes that TCG loads or stores at once */
enum { USER_BITS = 47 };      /* the kernel's addresses are above */

static struct model model;
static struct self_test self_test;
static unsigned verified_nodes; /* bit set */
static uint64_t node_bytes;
static const char* output_prefix;
static unsigned reports_written;
static unsigned
    current_phase; /* set by one thread of the guest between parallel regions; relaxed reads are enough */

static unsigned home_node(qemu_plugin_meminfo_t info, uint64_t vaddr) {
    struct qemu_plugin_hwaddr* address = qemu_plugin_get_hwaddr(info, vaddr);
    if (!address || qemu_plugin_hwaddr_is_io(address)) return MODEL_UNKNOWN_NODE;
    const uint64_t place = qemu_plugin_hwaddr_phys_addr(address) / node_bytes;
    const uint64_t node = place / 2;
    return place % 2 == 0 && node < model.options.nodes ? (unsigned)node : MODEL_UNKNOWN_NODE;
}

static void write_report(void) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s-%u.json", output_prefix, reports_written++);
    const char* error = length < (int)sizeof path ? report_write(&model, &self_test, path) : "path too long";
    if (error) fprintf(stderr, "homing counter: cannot write %s: %s\n", path, error);
    model_reset(&model);
}

static void check_self_test(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr) {
    const unsigned node = (unsigned)((vaddr - HOMING_SELF_TEST_PAGE) >> MODEL_PAGE_SHIFT);
    if (node >= MODEL_MAX_NODES) return;
    if (node < model.options.nodes && home_node(info, vaddr) == node &&
        cpu / model.options.cpus_per_node == node)
        verified_nodes |= 1u << node;
    else
        self_test.mismatches++;
    self_test.nodes_verified = (unsigned)__builtin_popcount(verified_nodes);
}

static void control(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr) {
    if (!qemu_plugin_mem_is_store(info)) return;
    if (vaddr - HOMING_MARK_PAGE < 8ul * HOMING_PHASES) {
        __atomic_store_n(&current_phase, (unsigned)((vaddr - HOMING_MARK_PAGE) / 8), __ATOMIC_SEQ_CST);
    } else if (vaddr == HOMING_CONTROL_PAGE) {
        __atomic_store_n(&current_phase, 0, __ATOMIC_SEQ_CST);
        write_report();
    } else if (vaddr >= HOMING_SELF_TEST_PAGE) {
        check_self_test(cpu, info, vaddr);
    }
}

static inline void count_line(unsigned cpu, unsigned phase, qemu_plugin_meminfo_t info, uint64_t vaddr,
                              uint64_t line, bool store) {
    if (!model_access(&model, cpu, phase, line, store))
        model_record_miss(&model, cpu, phase, vaddr >> MODEL_PAGE_SHIFT, home_node(info, vaddr));
}

/* An unaligned access may touch two lines. One that also crosses a page is left at the first: its second page
 * has no TLB entry that could be asked. Out of the way of the common case, which must be fast. */
static __attribute__((noinline)) void count_crossing(unsigned cpu, unsigned phase, qemu_plugin_meminfo_t info,
                                                     uint64_t vaddr, bool store) {
    const uint64_t end = vaddr + (1u << qemu_plugin_mem_size_shift(info)) - 1;
    const uint64_t last = end >> model.line_shift;
    if (last != vaddr >> model.line_shift && end >> MODEL_PAGE_SHIFT == vaddr >> MODEL_PAGE_SHIFT)
        count_line(cpu, phase, info, vaddr, last, store);
}

static inline void count_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, bool store) {
    const unsigned phase = __atomic_load_n(&current_phase, __ATOMIC_RELAXED);
    if (phase == 0 || cpu >= model.options.vcpus) return;
    model.vcpus[cpu].accesses[phase]++;
    count_line(cpu, phase, info, vaddr, vaddr >> model.line_shift, store);
    if (__builtin_expect((vaddr & (model.options.line_bytes - 1)) + LARGEST_ACCESS > model.options.line_bytes,
                         0))
        count_crossing(cpu, phase, info, vaddr, store);
}

/* One callback for both: QEMU 7.2 calls one that was registered for loads alone on stores too. */
static void on_memory_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void* user) {
    (void)user;
    if (__builtin_expect(vaddr >> USER_BITS != 0, 0)) return;
    const bool store = qemu_plugin_mem_is_store(info);
    if (__builtin_expect(vaddr >> HOMING_MARK_AREA_SHIFT != HOMING_MARK_PAGE >> HOMING_MARK_AREA_SHIFT, 1))
        count_access(cpu, info, vaddr, store);
    else if (store)
        control(cpu, info, vaddr);
}

/* syscall, or int: they access nothing of the user's themselves. */
static bool calls_kernel(const struct qemu_plugin_insn* instruction) {
    const uint8_t* bytes = qemu_plugin_insn_data(instruction);
    const size_t size = qemu_plugin_insn_size(instruction);
    return size == 2 && ((bytes[0] == 0x0f && bytes[1] == 0x05) || bytes[0] == 0xcd);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
    (void)id;
    const size_t instructions = qemu_plugin_tb_n_insns(block);
    if (instructions == 0 || qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0)) >> USER_BITS)
        return; /* kernel code */
    for (size_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
        if (calls_kernel(instruction)) continue;
        qemu_plugin_register_vcpu_mem_cb(instruction, on_memory_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void* user) {
    (void)id;
    (void)user;
    __atomic_store_n(&current_phase, 0, __ATOMIC_SEQ_CST);
    if (report_any(&model)) write_report();
}

static bool parse_number(const char* text, unsigned long most, unsigned long* number) {
    char* end;
    *number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && *number <= most;
}

/* Returns false if the argument is unknown or malformed. */
static bool parse_argument(struct model_options* options, const char* argument) {
    const char* value = strchr(argument, '=');
    if (!value) return false;
    const size_t name = (size_t)(value++ - argument);
    unsigned long number = 0;
#define IS(text) (name == sizeof(text) - 1 && memcmp(argument, text, name) == 0)
    if (IS("out")) {
        output_prefix = strdup(value);
        return output_prefix && *output_prefix;
    }
    if (IS("coherent")) {
        options->coherent = strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
        return options->coherent || strcmp(value, "off") == 0 || strcmp(value, "false") == 0;
    }
    if (!parse_number(value, 1ul << 30, &number)) return false;
    if (IS("nodes"))
        options->nodes = (unsigned)number;
    else if (IS("cpus_per_node"))
        options->cpus_per_node = (unsigned)number;
    else if (IS("memory"))
        node_bytes = (uint64_t)number << 20;
    else if (IS("cache"))
        options->cache_bytes = (size_t)number << 10;
    else if (IS("ways"))
        options->ways = (unsigned)number;
    else if (IS("line"))
        options->line_bytes = (unsigned)number;
    else if (IS("pages"))
        options->max_pages = (uint32_t)number;
    else
        return false;
#undef IS
    return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                           char** argv) {
    struct model_options options = {.nodes = 1,
                                    .cpus_per_node = 1,
                                    .cache_bytes = 1024 << 10,
                                    .ways = 16,
                                    .line_bytes = 64,
                                    .coherent = true,
                                    .max_pages = 1u << 21};
    for (int i = 0; i < argc; i++)
        if (!parse_argument(&options, argv[i])) {
            fprintf(stderr, "homing counter: bad argument '%s'\n", argv[i]);
            return -1;
        }
    if (!info->system_emulation || !output_prefix || node_bytes == 0) {
        fprintf(stderr,
                "homing counter: needs system emulation and the arguments out=PREFIX and memory=MIB\n");
        return -1;
    }
    options.vcpus = (unsigned)info->system.max_vcpus;
    const char* error = model_create(&model, &options);
    if (error) {
        fprintf(stderr, "homing counter: %s\n", error);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
