// SPDX-License-Identifier: Apache-2.0
/* Functions of the runtime that preserve all registers. This file is compiled for general registers only and without
 * sanitizers, because vector registers contain values of the caller until they are saved on the stack. */
#include "missed.h"
#include "hot.h"

#if defined(__x86_64__)

#include "budget.h"

#include <cpuid.h>

extern "C" {

__attribute__((visibility("hidden"))) uint64_t quipu_vector_bytes; /* size of the vector state; 0: unknown */
__attribute__((visibility("hidden"))) uint64_t quipu_vector_parts; /* components that XSAVE saves; 0: no XSAVE */

__attribute__((visibility("hidden"))) void quipu_find_vectors(void) {
    constexpr uint32_t legacy_bytes = 512, has_xsave = 1u << 27, state_leaf = 0xd;
    constexpr uint64_t tiles = uint64_t{3} << 17; /* AMX tiles, which calls need not preserve */
    uint32_t a, b, c, d;
    uint64_t bytes = legacy_bytes, parts = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & has_xsave)) {
        uint32_t low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        parts = (low | uint64_t{high} << 32) & ~tiles;
        if (__get_cpuid_count(state_leaf, 0, &a, &b, &c, &d))
            bytes = b;
    }
    quipu_vector_parts = parts;
    quipu_vector_bytes = (bytes + 63) & ~uint64_t{63};
}

uint64_t quipu_count_known(struct quipu_region *region, uint64_t *slot) {
    struct quipu_link *link = quipu_current == NULL ? NULL : quipu_known_link(quipu_current, region);
    if (link == NULL)
        return 0;
    if (slot != NULL)
        *slot = quipu_place(link, slot);
    else
        quipu_note_quick(quipu_current, region, link);
    return quipu_place(link, slot);
}

uint64_t **quipu_enter_known(struct quipu_region *region, uint64_t *slot, struct quipu_visit *visit) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_link *link = thread == NULL ? NULL : quipu_known_link(thread, region);
    if (link == NULL)
        return NULL;
    if (quipu_needs_no_clock(thread, link)) {
        if (slot != NULL)
            *slot = quipu_place(link, slot);
        else
            quipu_note_quick(thread, region, link);
        quipu_follow(thread, link, visit);
        return &link->counters;
    }
    if (thread->clock != QUIPU_CLOCK_TSC || thread->top == thread->limit || is_to_be_reviewed(link->to))
        return NULL;
    quipu_charge(thread, quipu_cycles());
    struct quipu_frame *frame = quipu_push_link(thread, link);
    visit->top = (uint64_t)frame | QUIPU_FRAMED;
    return &frame->counters;
}

uint64_t quipu_exit_known(const struct quipu_visit *visit) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_frame *frame = thread == NULL ? NULL : thread->top;
    if (frame == NULL || visit->top != ((uint64_t)frame | QUIPU_FRAMED) || thread->clock != QUIPU_CLOCK_TSC ||
        thread->own == NULL || quipu::own(thread)->annotations != NULL)
        return 0;
    if (!quipu_charged_alike(frame->back, thread->here))
        quipu_charge(thread, quipu_cycles());
    quipu_activate(thread, frame - 1, frame->back);
    return 1;
}
}

/* Defines a function that saves all general registers except the result register rax, and calls `known`. If the result
 * of `known` is 0, the function also saves the vector registers and calls `slowly`. last: instructions that pop rax and
 * set the result. */
#define QUIPU_PRESERVING(name, known, slowly, last)                                                                    \
    __asm__(".pushsection .text\n"                                                                                     \
            ".globl " name "\n"                                                                                        \
            ".type " name ", @function\n"                                                                              \
            ".p2align 4\n" name ":\n"                                                                                  \
            "    .cfi_startproc\n"                                                                                     \
            "    endbr64\n"                                                                                            \
            "    push %rbp\n"                                                                                          \
            "    .cfi_def_cfa_offset 16\n"                                                                             \
            "    .cfi_offset %rbp, -16\n"                                                                              \
            "    mov %rsp, %rbp\n"                                                                                     \
            "    .cfi_def_cfa_register %rbp\n"                                                                         \
            "    push %rbx\n"                                                                                          \
            "    .cfi_offset %rbx, -24\n"                                                                              \
            "    push %rcx\n"                                                                                          \
            "    push %rdx\n"                                                                                          \
            "    push %rsi\n"                                                                                          \
            "    push %rdi\n"                                                                                          \
            "    push %r8\n"                                                                                           \
            "    push %r9\n"                                                                                           \
            "    push %r10\n"                                                                                          \
            "    push %r11\n"                                                                                          \
            "    push %rax\n" known "    cmpq $0, quipu_vector_bytes(%rip)\n"                                          \
            "    jne 2f\n"                                                                                             \
            "    call quipu_find_vectors\n"                                                                            \
            "2:  mov %rsp, %rbx\n"                                                                                     \
            "    sub quipu_vector_bytes(%rip), %rsp\n"                                                                 \
            "    and $-64, %rsp\n"                                                                                     \
            "    mov quipu_vector_parts(%rip), %rax\n"                                                                 \
            "    mov %rax, %rdx\n"                                                                                     \
            "    shr $32, %rdx\n"                                                                                      \
            "    or %rax, %rax\n"                                                                                      \
            "    jz 3f\n"                                                                                              \
            "    movq $0, 512(%rsp)\n"                                                                                 \
            "    movq $0, 520(%rsp)\n"                                                                                 \
            "    movq $0, 528(%rsp)\n"                                                                                 \
            "    movq $0, 536(%rsp)\n"                                                                                 \
            "    movq $0, 544(%rsp)\n"                                                                                 \
            "    movq $0, 552(%rsp)\n"                                                                                 \
            "    movq $0, 560(%rsp)\n"                                                                                 \
            "    movq $0, 568(%rsp)\n"                                                                                 \
            "    xsave64 (%rsp)\n"                                                                                     \
            "    jmp 4f\n"                                                                                             \
            "3:  fxsave64 (%rsp)\n"                                                                                    \
            "4:  mov -40(%rbp), %rdi\n"                                                                                \
            "    mov -32(%rbp), %rsi\n"                                                                                \
            "    mov -24(%rbp), %rdx\n"                                                                                \
            "    call " slowly "\n"                                                                                    \
            "    mov %rax, %rcx\n"                                                                                     \
            "    mov quipu_vector_parts(%rip), %rax\n"                                                                 \
            "    mov %rax, %rdx\n"                                                                                     \
            "    shr $32, %rdx\n"                                                                                      \
            "    or %rax, %rax\n"                                                                                      \
            "    jz 5f\n"                                                                                              \
            "    xrstor64 (%rsp)\n"                                                                                    \
            "    jmp 6f\n"                                                                                             \
            "5:  fxrstor64 (%rsp)\n"                                                                                   \
            "6:  mov %rbx, %rsp\n"                                                                                     \
            "    mov %rcx, %rax\n"                                                                                     \
            "1:  " last "\n"                                                                                           \
            "    pop %r11\n"                                                                                           \
            "    pop %r10\n"                                                                                           \
            "    pop %r9\n"                                                                                            \
            "    pop %r8\n"                                                                                            \
            "    pop %rdi\n"                                                                                           \
            "    pop %rsi\n"                                                                                           \
            "    pop %rdx\n"                                                                                           \
            "    pop %rcx\n"                                                                                           \
            "    pop %rbx\n"                                                                                           \
            "    pop %rbp\n"                                                                                           \
            "    .cfi_def_cfa %rsp, 8\n"                                                                               \
            "    ret\n"                                                                                                \
            "    .cfi_endproc\n"                                                                                       \
            ".size " name ", .-" name "\n"                                                                             \
            ".popsection\n")
#define QUIPU_FIRST(known) "    call " known "\n    test %rax, %rax\n    jnz 1f\n"

QUIPU_PRESERVING("quipu_count_missed", QUIPU_FIRST("quipu_count_known"), "quipu_count_slowly", "add $8, %rsp");
QUIPU_PRESERVING("quipu_enter_missed", QUIPU_FIRST("quipu_enter_known"), "quipu_enter_slowly",
                 "mov (%rax), %rax\n    add $8, %rsp");
QUIPU_PRESERVING("quipu_exit_missed", QUIPU_FIRST("quipu_exit_known"), "quipu_exit_visit@PLT", "pop %rax");

#endif
