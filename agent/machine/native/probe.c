/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a machine: each command prints one number. BYTES: size of the memory that is read. LINE: bytes of a cache
 * line.
 *
 * - latency BYTES LINE: seconds per load from a random line, where each load needs the result of the previous load
 * - bandwidth BYTES CORES: bytes per second that CORES threads together read from memory. Each thread reads BYTES + 4
 *   MiB, in chunks of 4 MiB; the lower quartile of the times of its chunks counts.
 * - tsc: ticks of the time stamp counter per second; 0 if there is no counter
 * - frequency: cycles of a core per second during computation
 * - in-order BYTES LINE: seconds per load, with one load from each of the consecutive lines; lower quartile
 * - scattered BYTES LINE: seconds per load from a random line, where the loads are independent; lower quartile
 * - flops: multiplications and additions in double precision per second of a core */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* latency, frequency and flops use the fastest of many passes. A pass is usually shorter than a time slice of the
 * scheduler, so some passes are not interrupted. The other commands use lower quartiles (seconds_of).
 *
 * PASSES: number of passes of `latency`; frequency and flops make ten times as many. MOST_PASSES: largest number of
 * passes in seconds_of. CHUNK: bytes of a chunk of `bandwidth`. */
enum { PASSES = 200, MOST_PASSES = 1 << 16, MOST_CORES = 4096, CHUNK = 1 << 22 };
/* least_seconds: shortest pass of `latency`. spread_seconds, most_seconds: seconds_of makes at least PASSES passes that
 * together take at least spread_seconds, but begins no pass after most_seconds. */
static const double least_seconds = 0.001, spread_seconds = 0.1, most_seconds = 1.0;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t next_random(uint64_t *state) { /* xorshift64, Marsaglia 2003 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Allocates memory in huge pages if possible, so that the times contain few page-table walks (TLB misses). */
static void *memory_of(size_t bytes) {
    const size_t huge = (size_t)2 << 20;
    const size_t whole = (bytes + huge - 1) / huge * huge;
    void *memory = aligned_alloc(huge, whole);
    if (memory == NULL) {
        fprintf(stderr, "quipu-probe: no memory for %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, whole);
    return memory;
}

/* Allocates memory in pages of the usual size, as programs do. */
static char *ordinary_memory_of(size_t bytes) {
    char *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == NULL) {
        fprintf(stderr, "quipu-probe: no memory for %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    memset(memory, 1, bytes);
    return memory;
}

struct link {
    struct link *next;
};

/* Returns the first link of a chain of pointers, one in each line, that visits all lines in random order and then
 * begins again (Sattolo's algorithm). No prefetcher can predict the next line. */
static struct link *chain_of(size_t bytes, size_t line) {
    const size_t lines = bytes / line < 2 ? 2 : bytes / line;
    char *memory = memory_of(lines * line);
    uint32_t *order = malloc(lines * sizeof *order);
    uint64_t state = 88172645463325252ULL;
    if (order == NULL)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = lines - 1; i > 0; i--) {
        const size_t j = next_random(&state) % i;
        const uint32_t other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (size_t i = 0; i < lines; i++)
        ((struct link *)(memory + order[i] * line))->next = (struct link *)(memory + order[(i + 1) % lines] * line);
    free(order);
    return (struct link *)memory;
}

static void *volatile kept; /* results are stored here, so that the compiler does not remove the loads */

static double latency(size_t bytes, size_t line) {
    struct link *place = chain_of(bytes, line);
    double best = 1e9;
    size_t loads = 1 << 10;
    for (int pass = 0; pass < PASSES;) {
        const double begin = now();
        for (size_t i = 0; i < loads; i += 8) {
            place = place->next;
            place = place->next;
            place = place->next;
            place = place->next;
            place = place->next;
            place = place->next;
            place = place->next;
            place = place->next;
        }
        kept = place;
        const double seconds = now() - begin;
        if (seconds < least_seconds) {
            loads *= 2;
            continue;
        }
        if (seconds / (double)loads < best)
            best = seconds / (double)loads;
        pass++;
    }
    return best;
}

/* Executes `loads` loads, each from one of `lines` lines of `line` bytes. Returns the sum of the loaded values. */
typedef uint64_t loads_of(const char *memory, size_t line, size_t lines, size_t loads);

static uint64_t load_in_order(const char *memory, size_t line, size_t lines, size_t loads) {
    uint64_t sum = 0;
    for (size_t done = 0; done < loads;) {
        const size_t part = loads - done < lines ? loads - done : lines;
        for (size_t i = 0; i < part; i++)
            sum += *(const uint64_t *)(memory + i * line);
        done += part;
    }
    return sum;
}

static uint64_t load_scattered(const char *memory, size_t line, size_t lines, size_t loads) {
    uint64_t sum = 0, state = 1;
    for (size_t i = 0; i < loads; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U; /* Knuth, MMIX */
        sum += *(const uint64_t *)(memory + ((state >> 32) * lines >> 32) * line);
    }
    return sum;
}

/* Returns the seconds per load: the lower quartile over the passes. A pass makes at least as many loads as there are
 * lines, so that the lines do not move to a nearer cache. The fastest pass is not used: it may have found more of a
 * shared cache free than usual. */
static double seconds_of(loads_of *load, size_t bytes, size_t line) {
    const size_t lines = bytes / line < 2 ? 2 : bytes / line;
    const char *memory = ordinary_memory_of(lines * line);
    static volatile uint64_t sum;
    static double times[MOST_PASSES];
    int passes = 0;
    const size_t loads = lines < 1 << 15 ? 1 << 15 : lines;
    sum += load(memory, line, lines, loads);
    const double begin = now();
    for (double last = begin;
         passes < MOST_PASSES && last - begin < most_seconds && (passes < PASSES || last - begin < spread_seconds);
         passes++) {
        sum += load(memory, line, lines, loads);
        const double end = now();
        times[passes] = (end - last) / (double)loads;
        last = end;
    }
    qsort(times, (size_t)passes, sizeof *times, ascending);
    return times[passes / 4];
}

struct reader {
    pthread_t thread;
    pthread_barrier_t *start;
    size_t bytes;
    double seconds; /* lower quartile of the time per chunk */
    uint64_t sum;
};

static void *read_memory(void *argument) {
    struct reader *reader = argument;
    const uint64_t *memory = memory_of(reader->bytes);
    const size_t words = reader->bytes / sizeof *memory;
    const size_t chunk = CHUNK / sizeof *memory, chunks = words / chunk;
    double *times = malloc(chunks * sizeof *times);
    if (times == NULL)
        exit(EXIT_FAILURE);
    pthread_barrier_wait(reader->start);
    for (size_t part = 0; part < chunks; part++) {
        uint64_t sums[8] = {0};
        const uint64_t *from = memory + part * chunk;
        const double begin = now();
        for (size_t i = 0; i < chunk; i += 8)
            for (size_t lane = 0; lane < 8; lane++)
                sums[lane] += from[i + lane];
        times[part] = now() - begin;
        for (size_t lane = 0; lane < 8; lane++)
            reader->sum += sums[lane];
    }
    qsort(times, chunks, sizeof *times, ascending);
    reader->seconds = times[chunks / 4];
    free(times);
    return NULL;
}

static double bandwidth(size_t bytes, int cores) {
    struct reader *readers = calloc((size_t)cores, sizeof *readers);
    pthread_barrier_t start;
    double total = 0.0;
    if (readers == NULL)
        exit(EXIT_FAILURE);
    pthread_barrier_init(&start, NULL, (unsigned)cores);
    for (int i = 0; i < cores; i++) {
        readers[i].start = &start;
        readers[i].bytes = bytes;
        if (pthread_create(&readers[i].thread, NULL, read_memory, &readers[i]) != 0) {
            fprintf(stderr, "quipu-probe: cannot start %d threads\n", cores);
            exit(EXIT_FAILURE);
        }
    }
    for (int i = 0; i < cores; i++) {
        pthread_join(readers[i].thread, NULL);
        total += CHUNK / readers[i].seconds;
    }
    kept = readers;
    return total;
}

static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return 0;
#endif
}

static double tsc(void) {
    const double begin = now();
    const uint64_t first = ticks();
    while (now() - begin < 0.2) {
    }
    const uint64_t last = ticks();
    return (double)(last - first) / (now() - begin);
}

/* Returns the cycles per second. Executes instructions that take one cycle and wait for the previous instruction:
 * OR on x86-64, ROR on AArch64. On other processors the result is not a frequency. */
static double frequency(void) {
    const size_t rounds = 1 << 13;
    double best = 1e9;
    uint64_t value = 1;
    for (int pass = 0; pass < 10 * PASSES; pass++) {
        const double begin = now();
        for (size_t i = 0; i < rounds; i++) {
#if defined(__x86_64__)
            __asm__ volatile(".rept 32\n\trorq $1, %0\n\t.endr" : "+r"(value));
#elif defined(__aarch64__)
            __asm__ volatile(".rept 32\n\tror %0, %0, #1\n\t.endr" : "+r"(value));
#else
            for (int step = 0; step < 32; step++)
                __asm__ volatile("" : "+r"(value));
#endif
        }
        const double seconds = now() - begin;
        if (seconds < best)
            best = seconds;
    }
    return 32.0 * (double)rounds / best;
}

static size_t number(const char *text, size_t most) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0' || value == 0 || value > most) {
        fprintf(stderr, "quipu-probe: %s is not a number from 1 to %zu\n", text, most);
        exit(2);
    }
    return (size_t)value;
}

/* CHAINS: number of independent chains of operations. In a chain, each multiplication and addition needs the result of
 * the previous operation. There are enough chains to hide the latency of the operations. ROUNDS: multiplications and
 * additions per chain. */
enum { CHAINS = 10, ROUNDS = 1 << 14 };
#define MULTIPLY_ADD(name, lanes, attributes)                                                                          \
    typedef double name##_vector __attribute__((vector_size(8 * (lanes))));                                            \
    __attribute__((attributes)) static double name(double factor, double summand) {                                    \
        name##_vector chain[CHAINS], by = factor - (name##_vector){0}, plus = summand - (name##_vector){0};            \
        double sum = 0;                                                                                                \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            chain[i] = by;                                                                                             \
        for (int round = 0; round < ROUNDS; round++)                                                                   \
            for (int i = 0; i < CHAINS; i++)                                                                           \
                chain[i] = chain[i] * by + plus;                                                                       \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            for (int lane = 0; lane < (lanes); lane++)                                                                 \
                sum += chain[i][lane];                                                                                 \
        return sum;                                                                                                    \
    }
MULTIPLY_ADD(with_2_lanes, 2, )
#if defined(__x86_64__)
MULTIPLY_ADD(with_4_lanes, 4, target("avx2,fma"))
MULTIPLY_ADD(with_8_lanes, 8, target("avx512f"))
#endif

static double flops_of(double (*run)(double, double), int lanes) {
    volatile double factor = 0.5, sum = 0;
    double best = 1e9;
    for (int pass = 0; pass < 10 * PASSES; pass++) {
        const double begin = now();
        sum += run(factor, 1.0);
        const double seconds = now() - begin;
        best = seconds < best ? seconds : best;
    }
    return 2.0 * lanes * CHAINS * ROUNDS / best;
}

static double flops(void) {
    double best = flops_of(with_2_lanes, 2);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        const double rate = flops_of(with_4_lanes, 4);
        best = rate > best ? rate : best;
    }
    if (__builtin_cpu_supports("avx512f")) {
        const double rate = flops_of(with_8_lanes, 8);
        best = rate > best ? rate : best;
    }
#endif
    return best;
}

int main(int argc, char **argv) {
    /* Largest memory in bytes. With lines of 32 bytes or more, numbers of lines have at most 32 bits. */
    const size_t most = (size_t)1 << 37;
    if (argc == 4 && strcmp(argv[1], "latency") == 0)
        printf("%.6e\n", latency(number(argv[2], most), number(argv[3], 4096)));
    else if (argc == 4 && strcmp(argv[1], "bandwidth") == 0)
        printf("%.6e\n", bandwidth(number(argv[2], most) + CHUNK, (int)number(argv[3], MOST_CORES)));
    else if (argc == 4 && strcmp(argv[1], "in-order") == 0)
        printf("%.6e\n", seconds_of(load_in_order, number(argv[2], most), number(argv[3], 4096)));
    else if (argc == 4 && strcmp(argv[1], "scattered") == 0)
        printf("%.6e\n", seconds_of(load_scattered, number(argv[2], most), number(argv[3], 4096)));
    else if (argc == 2 && strcmp(argv[1], "tsc") == 0)
        printf("%.6e\n", tsc());
    else if (argc == 2 && strcmp(argv[1], "frequency") == 0)
        printf("%.6e\n", frequency());
    else if (argc == 2 && strcmp(argv[1], "flops") == 0)
        printf("%.6e\n", flops());
    else {
        fprintf(stderr, "usage: quipu-probe latency BYTES LINE | bandwidth BYTES CORES | in-order BYTES LINE | "
                        "scattered BYTES LINE | tsc | frequency | flops\n");
        return 2;
    }
    return EXIT_SUCCESS;
}
