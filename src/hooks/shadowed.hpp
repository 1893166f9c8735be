// Functions of the program's libraries that have the name of a function of the C library, and mean something
// else: a library's own select() that sorts, or connect() of two meshes. The C library's is hidden behind it,
// for everybody; our hook, which stands before both, must let calls of it pass as they are: what their
// arguments are, and in which registers, is not known.
#pragma once

namespace homing::hooks {

/// Find those that are there now. Hooks lead past themselves from then on.
void find_shadowed() noexcept;
bool is_shadowed(const char* name) noexcept;

} // namespace homing::hooks

// The exported symbol of a hook is a few instructions that change no argument: where the function behind it
// is to be had as it is, they lead there, else to the hook itself (homing_door_NAME). The variable needs no
// relocation, for the hook may be called before there was any; the table of all such variables does.
#define HOMING_STUB_TABLE(name)                                                                              \
    ".pushsection .bss.homing_past, \"aw\", @nobits\n"                                                       \
    ".balign 8\n"                                                                                            \
    "homing_past_" #name ": .skip 8\n"                                                                       \
    ".popsection\n"                                                                                          \
    ".pushsection .rodata.homing_names, \"a\", @progbits\n"                                                  \
    "homing_name_" #name ": .asciz \"" #name "\"\n"                                                          \
    ".popsection\n"                                                                                          \
    ".pushsection homing_stubs, \"aw\", @progbits\n"                                                         \
    ".balign 8\n"                                                                                            \
    ".quad homing_name_" #name ", homing_past_" #name "\n"                                                   \
    ".popsection\n"
#define HOMING_STUB_BEGIN(name)                                                                              \
    ".pushsection .text.homing_stubs, \"ax\", @progbits\n"                                                   \
    ".balign 16\n"                                                                                           \
    ".globl " #name "\n"                                                                                     \
    ".type " #name ", @function\n" #name ":\n"                                                               \
    ".cfi_startproc\n"
#define HOMING_STUB_END(name)                                                                                \
    ".cfi_endproc\n"                                                                                         \
    ".size " #name ", . - " #name "\n"                                                                       \
    ".popsection\n"
#if defined(__x86_64__)
#define HOMING_STUB(name)                                                                                    \
    __asm__(HOMING_STUB_TABLE(name) HOMING_STUB_BEGIN(name) "endbr64\n"                                      \
                                                            "movq homing_past_" #name "(%rip), %r11\n"       \
                                                            "testq %r11, %r11\n"                             \
                                                            "jz homing_door_" #name "\n"                     \
                                                            "jmp *%r11\n" HOMING_STUB_END(name));
#elif defined(__aarch64__)
#define HOMING_STUB(name)                                                                                    \
    __asm__(HOMING_STUB_TABLE(name) HOMING_STUB_BEGIN(name) "hint #34\n" /* bti c */                         \
                                                            "adrp x16, homing_past_" #name "\n"              \
                                                            "ldr x16, [x16, #:lo12:homing_past_" #name "]\n" \
                                                            "cbz x16, 1f\n"                                  \
                                                            "br x16\n"                                       \
                                                            "1: b homing_door_" #name                        \
                                                            "\n" HOMING_STUB_END(name));
#else
#define HOMING_STUB(name)                                                                                    \
    __asm__(".globl " #name "\n"                                                                             \
            ".set " #name ", homing_door_" #name "\n");
#endif
