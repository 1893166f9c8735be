/* The part of QEMU's TCG plugin interface (version 1, QEMU 6.0 to 8.x) that the counter uses.
 *
 * Debian does not package qemu-plugin.h, so the few functions are declared here. QEMU exports them from its
 * own executable and resolves them when it loads the plugin. Opaque types stay opaque: nothing here depends
 * on QEMU's structure layouts. */
#ifndef HOMING_LAB_QEMU_PLUGIN_API_H
#define HOMING_LAB_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef struct {
    const char* target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus;
            int max_vcpus;
        } system;
    };
} qemu_info_t;

enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum { QEMU_PLUGIN_MEM_RW = 3 };

typedef void (*qemu_plugin_translation_callback)(qemu_plugin_id_t, struct qemu_plugin_tb*);
typedef void (*qemu_plugin_memory_callback)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t vaddr, void* user);
typedef void (*qemu_plugin_exit_callback)(qemu_plugin_id_t, void* user);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_translation_callback);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*, qemu_plugin_memory_callback, int flags,
                                      int rw, void* user);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_exit_callback, void* user);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr*);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr*);

#endif
