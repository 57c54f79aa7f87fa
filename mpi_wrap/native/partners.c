/* SPDX-License-Identifier: Apache-2.0 */
/* Stores this rank's row of the communication matrix in a hash table with open addressing and without locks. A thread
 * reserves a slot by storing the rank of the partner in it. Slots are never released. Partners beyond MOST are counted
 * together. Under SMPI, all ranks are in one process and run one at a time. Each rank then has a separate table, which
 * grows. */
#include "partners.h"

#include "quipu_runtime.h"

#include <stdatomic.h>
#include <stdio.h>

enum { SLOTS = 2048, MOST = SLOTS / 2 };

/* Bytes and number of messages that were sent to a partner; bytes and number of one-sided operations that fetched data
 * from it. */
struct exchanged {
    _Atomic uint64_t sent, messages, fetched, gets;
};

struct slot {
    _Atomic uint32_t taken; /* rank of the partner + 1; 0: the slot is free */
    struct exchanged with;
};

struct quipu_mpi_partners {
    uint32_t slots; /* a power of two */
    _Atomic uint32_t used;
    struct slot *slot;
    struct exchanged rest; /* sum over the partners without a slot */
};

static uint32_t place_of(uint32_t rank, uint32_t slots) {
    return (uint32_t)((rank * UINT64_C(0x9E3779B97F4A7C15)) >> 40) & (slots - 1);
}

/* Returns the slot of this rank, or a free slot if it has none; NULL if the table is full. */
static struct slot *slot_of(struct slot *slots, uint32_t count, uint32_t rank) {
    uint32_t at = place_of(rank, count);
    for (uint32_t looked = 0; looked < count; looked++, at = (at + 1) & (count - 1)) {
        const uint32_t taken = atomic_load_explicit(&slots[at].taken, memory_order_relaxed);
        if (taken == rank + 1 || taken == 0)
            return &slots[at];
    }
    return NULL;
}

#ifdef SMPI_H
#include <stdlib.h>

enum { FIRST_SLOTS = 16 };

static void grow(struct quipu_mpi_partners *table) {
    const uint32_t count = table->slots == 0 ? FIRST_SLOTS : 2 * table->slots;
    struct slot *slots = calloc(count, sizeof *slots);
    if (slots == NULL)
        return;
    for (uint32_t i = 0; i < table->slots; i++)
        if (table->slot[i].taken != 0)
            *slot_of(slots, count, table->slot[i].taken - 1) = table->slot[i];
    free(table->slot);
    table->slot = slots;
    table->slots = count;
}

static struct quipu_mpi_partners *own(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL)
        return NULL;
    if (rank->partners == NULL)
        rank->partners = calloc(1, sizeof *rank->partners);
    struct quipu_mpi_partners *table = rank->partners;
    if (table != NULL && 2 * table->used >= table->slots && table->slots < SLOTS)
        grow(table);
    return table;
}
#else
static struct quipu_mpi_partners *own(void) {
    static struct slot slots[SLOTS];
    static struct quipu_mpi_partners table = {.slots = SLOTS, .slot = slots};
    return &table;
}
#endif

/* Returns the counters of a partner. partner: rank in MPI_COMM_WORLD, or QUIPU_MPI_ELSEWHERE. */
static struct exchanged *exchanged_with(struct quipu_mpi_partners *table, int partner) {
    if (partner < 0)
        return &table->rest;
    for (;;) {
        struct slot *slot = table->slots == 0 ? NULL : slot_of(table->slot, table->slots, (uint32_t)partner);
        if (slot == NULL)
            return &table->rest;
        uint32_t taken = atomic_load_explicit(&slot->taken, memory_order_relaxed);
        if (taken == (uint32_t)partner + 1)
            return &slot->with;
        if (atomic_load_explicit(&table->used, memory_order_relaxed) >= MOST)
            return &table->rest;
        if (atomic_compare_exchange_strong_explicit(&slot->taken, &taken, (uint32_t)partner + 1, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
            return &slot->with;
        } /* another thread has reserved the slot, possibly for the same rank: search again */
    }
}

static void add(_Atomic uint64_t *sum, uint64_t value) {
    if (__builtin_expect(quipu_mpi_concurrent, 0))
        atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
    else
        atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + value, memory_order_relaxed);
}

void quipu_mpi_sent_to(int partner, uint64_t bytes) {
    struct quipu_mpi_partners *table = own();
    if (table == NULL)
        return;
    struct exchanged *with = exchanged_with(table, partner);
    add(&with->sent, bytes);
    add(&with->messages, 1);
}

void quipu_mpi_fetched_from(int partner, uint64_t bytes) {
    struct quipu_mpi_partners *table = own();
    if (table == NULL)
        return;
    struct exchanged *with = exchanged_with(table, partner);
    add(&with->fetched, bytes);
    add(&with->gets, 1);
}

enum { TEXT = 2048, LONGEST = 5 * 24 }; /* bytes of an attribute, and of one entry in it, at most */

/* An attribute that is being composed. It is on the stack, because a signal handler, which must not allocate memory,
 * may call MPI_Abort. */
struct text {
    char bytes[TEXT];
    size_t length;
    int number; /* of the attribute */
};

static void write_out(struct text *text) {
    char key[32];
    if (text->length == 0)
        return;
    snprintf(key, sizeof key, "partners:%d", text->number++);
#ifdef SMPI_H
    quipu_location_attribute(key, text->bytes);
#else
    quipu_attribute(key, text->bytes);
#endif
    text->length = 0;
}

static void write_entry(struct text *text, const char *name, struct exchanged *with) {
    if (with->messages == 0 && with->gets == 0)
        return;
    if (text->length + LONGEST > TEXT)
        write_out(text);
    const int length =
        snprintf(text->bytes + text->length, TEXT - text->length, "%s%s:%llu:%llu:%llu:%llu", text->length ? " " : "",
                 name, (unsigned long long)with->sent, (unsigned long long)with->messages,
                 (unsigned long long)with->fetched, (unsigned long long)with->gets);
    text->length += length > 0 ? (size_t)length : 0;
}

void quipu_mpi_report_partners(void) {
    struct quipu_mpi_partners *table = own();
    struct text text;
    if (table == NULL)
        return;
    text.length = 0;
    text.number = 0;
    for (uint32_t i = 0; i < table->slots; i++) {
        const uint32_t taken = atomic_load_explicit(&table->slot[i].taken, memory_order_relaxed);
        char name[16];
        snprintf(name, sizeof name, "%u", taken - 1);
        if (taken != 0)
            write_entry(&text, name, &table->slot[i].with);
    }
    write_entry(&text, "*", &table->rest);
    write_out(&text);
}
