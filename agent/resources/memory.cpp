// SPDX-License-Identifier: Apache-2.0
/* libquipu_memory.so: wrappers of malloc, free and related functions (docs/design/memory.md).
 *
 * Each thread counts separately. It adds the difference of allocated and released bytes to the total of the process
 * only after some KiB, so that threads rarely write to the same cache line. */
#include "further.h"
#include "holders.h"
#include "hot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quipu::memory {
namespace {

struct Allocator {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable)(void *);
};

Allocator next;           /* the allocator of the program; complete when `free` is set */
__thread bool looking_up; /* this thread is inside of look_up */

/* Memory for allocations that dlsym makes while it finds the functions of the allocator. It is never released. */
alignas(16) char early[size_t{64} << 10];
size_t early_used;                  /* bytes */
constexpr size_t early_header = 16; /* bytes before each block, which contain its size */

bool is_early(const void *block) { return block >= early && block < early + sizeof early; }
size_t early_size(const void *block) {
    size_t size;
    memcpy(&size, static_cast<const char *>(block) - early_header, sizeof size);
    return size;
}

void *allocate_early(size_t bytes) {
    const size_t size = (bytes + 15) & ~size_t{15};
    if (bytes > sizeof early)
        return nullptr;
    const size_t at = __atomic_fetch_add(&early_used, size + early_header, __ATOMIC_RELAXED);
    if (at + size + early_header > sizeof early)
        return nullptr;
    memcpy(early + at, &bytes, sizeof bytes);
    return early + at + early_header;
}

template <typename Function> void find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void look_up() {
    looking_up = true;
    Allocator found = {};
    find(found.malloc, "malloc");
    find(found.calloc, "calloc");
    find(found.realloc, "realloc");
    find(found.posix_memalign, "posix_memalign");
    find(found.aligned_alloc, "aligned_alloc");
    find(found.memalign, "memalign");
    find(found.valloc, "valloc");
    find(found.pvalloc, "pvalloc");
    find(found.usable, "malloc_usable_size");
    find(found.free, "free");
    looking_up = false;
    void (*const last)(void *) = found.free;
    found.free = nullptr;
    next = found;
    __atomic_store_n(&next.free, last, __ATOMIC_RELEASE);
}

/* Finds the allocator if necessary. Returns whether it is known: false in allocations that look_up causes. */
inline bool ready() {
    if (__builtin_expect(__atomic_load_n(&next.free, __ATOMIC_ACQUIRE) != nullptr, 1))
        return true;
    if (looking_up)
        return false;
    look_up();
    return true;
}

/* The counters of a thread. Sizes are in bytes. */
struct Thread {
    int64_t balance; /* allocated minus released bytes since the last addition to `total` */
    int64_t base;    /* `total` after this addition */
    int64_t high;    /* largest base + balance since then */
    int64_t low;     /* the balance is added to `total` if it is lower; 0: the thread is new; INT64_MAX: it has ended */
    int64_t until;   /* bytes of small blocks until the next small block is stored */
    uint64_t large;  /* blocks with at least this number of usable bytes are always stored */
    uint64_t random; /* state of the random numbers */
    uint64_t allocations, bytes, releases, released; /* counts before the first call path */
    bool busy; /* this thread is inside of this library, and blocks are not stored */
};

__thread Thread state;

bool counting = true;
int64_t total, peak;                  /* the heap of the process in bytes: now, and at its largest */
int64_t noted;                        /* the heap at the latest recorded peak */
uint32_t metrics;                     /* index of the first metric of this library in a node; 0: not known yet */
uint64_t period = uint64_t{16} << 10; /* bytes of small blocks of which one block is stored */
quipu_node *outermost;                /* the outermost call path of the program */
pthread_key_t thread_end;             /* a key with a destructor, which runs at the end of a thread */
bool has_thread_end;

/* The code of the MPI wrappers. The blocks that it allocates do not belong to the heap of the program. */
uintptr_t own_code, own_size;

inline bool is_own(const void *caller) { return reinterpret_cast<uintptr_t>(caller) - own_code < own_size; }

/* Returns the active call path; null before the first one. */
inline quipu_node *path() {
    const quipu_thread *thread = quipu_current;
    if (!thread || !thread->own)
        return nullptr;
    quipu_node *here = thread->here;
    return here->id ? here : here->up;
}

/* Finds the index of the first metric of this library in a node; 0 before the profile exists. */
__attribute__((noinline)) uint32_t find_metrics() {
    if (quipu_current && quipu_current->own)
        __atomic_store_n(&metrics, quipu_further_place(QUIPU_GROUP_MEMORY), __ATOMIC_RELAXED);
    return metrics;
}

/* Returns the metrics of this library in the active call path; null before the first call path. */
inline uint64_t *own_metrics() {
    const uint32_t known = metrics, place = __builtin_expect(known != 0, 1) ? known : find_metrics();
    quipu_node *node = __builtin_expect(place != 0, 1) ? path() : nullptr;
    return __builtin_expect(node != nullptr, 1) ? node->metrics + place : nullptr;
}

/* Sets *largest to `value` if this is larger. */
inline void raise(int64_t *largest, int64_t value) {
    int64_t old = __atomic_load_n(largest, __ATOMIC_RELAXED);
    while (value > old &&
           !__atomic_compare_exchange_n(largest, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

inline void raise_metric(quipu_node *node, uint32_t metric, uint64_t value) {
    uint64_t *place = &node->metrics[metrics + metric];
    if (__builtin_expect(value > __atomic_load_n(place, __ATOMIC_RELAXED), 0))
        __atomic_store_n(place, value, __ATOMIC_RELAXED);
}

inline void add(quipu_node *node, uint32_t metric, uint64_t value) {
    quipu_increase(&node->metrics[metrics + metric], value);
}

constexpr int64_t batch = int64_t{64} << 10; /* released bytes after which a thread updates `total` */

/* Adds the balance of a thread to `total`, and updates `peak`. */
void share_balance(Thread *thread) {
    raise(&peak, thread->high);
    thread->base = __atomic_add_fetch(&total, thread->balance, __ATOMIC_RELAXED);
    thread->balance = 0;
    thread->high = thread->base;
    raise(&peak, thread->base);
}

void begin(Thread *thread) {
    thread->low = -batch;
    thread->random = reinterpret_cast<uint64_t>(thread) | 1;
    if (has_thread_end)
        pthread_setspecific(thread_end, thread);
}

/* Runs at the end of a thread. Allocations and releases that the thread still makes are added to `total` immediately.
 */
void end(void *argument) {
    auto *thread = static_cast<Thread *>(argument);
    share_balance(thread);
    thread->low = INT64_MAX;
    thread->large = 0;
}

/* Returns the bytes until the next small block is stored: a random number from 0.5 to 1.5 periods (xorshift64,
 * Marsaglia 2003), so that periodic patterns of sizes cause no bias. */
int64_t next_step(Thread *thread) {
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    return static_cast<int64_t>(period / 2 + thread->random % period);
}

quipu_node *root_of(quipu_node *node) {
    while (node->up)
        node = node->up;
    return node;
}

/* Adds the counts of a thread before its first call path to its root, which stands for the code outside of all regions.
 */
void count_earlier(Thread *thread, quipu_node *node) {
    quipu_node *root = root_of(node);
    add(root, QUIPU_ALLOCATIONS, thread->allocations);
    add(root, QUIPU_ALLOCATED_BYTES, thread->bytes);
    add(root, QUIPU_RELEASES, thread->releases);
    add(root, QUIPU_RELEASED_BYTES, thread->released);
    raise_metric(root, QUIPU_HEAP_PEAK, static_cast<uint64_t>(thread->high > 0 ? thread->high : 0));
    thread->allocations = thread->bytes = thread->releases = thread->released = 0;
}

/* The increase of the heap after which a new peak is recorded. While the heap grows, this step is large, so that few
 * peaks are recorded. Just before the heap shrinks, the step is small, so that the last peak is close to the largest
 * heap. */
struct Step {
    int64_t least, share; /* the step is the larger of `least` bytes and heap / share */
};
constexpr Step growing = {int64_t{64} << 10, 64}, before_shrinking = {int64_t{4} << 10, 1024};

/* Records a new peak, and chooses the period for the heap, if the heap has grown by the step since the latest recorded
 * peak. node: the active call path; null before the first one. */
void note_highest(quipu_node *node, const Step &step) {
    const int64_t now = __atomic_load_n(&total, __ATOMIC_RELAXED), before = __atomic_load_n(&noted, __ATOMIC_RELAXED);
    if (now < before + (before / step.share > step.least ? before / step.share : step.least))
        return;
    __atomic_store_n(&noted, now, __ATOMIC_RELAXED);
    if (node) {
        quipu_node *top = node;
        while (top->up && top->up->region)
            top = top->up;
        outermost = top;
    }
    note_peak(static_cast<uint64_t>(now), metrics ? metrics + QUIPU_HEAP_HELD : 0);
    constexpr uint64_t least_period = uint64_t{16} << 10, shares = 2048;
    const uint64_t wanted = static_cast<uint64_t>(now) / shares;
    __atomic_store_n(&period, wanted > least_period ? wanted : least_period, __ATOMIC_RELAXED);
}

/* Handles the first block of a thread, and blocks that are stored. */
__attribute__((noinline)) void allocated_slowly(Thread *thread, const void *block, size_t usable) {
    if (thread->busy)
        return;
    thread->busy = true;
    const int error = errno;
    if (thread->low == 0)
        begin(thread);
    quipu_node *node = metrics ? path() : nullptr;
    if (node && (thread->allocations || thread->releases))
        count_earlier(thread, node);
    share_balance(thread);
    const bool is_large = usable >= thread->large;
    if (thread->low == INT64_MAX) {
        thread->busy = false;
        return;
    }
    thread->large = period / 2;
    quipu_node *const holder = node ? node : &before_regions;
    if (is_large && usable >= thread->large)
        remember(block, {holder, usable, true});
    else if (!is_large)
        remember(block, {holder, period, false});
    if (thread->until < 0)
        thread->until = next_step(thread);
    note_highest(node, growing);
    errno = error;
    thread->busy = false;
}

inline void allocated(const void *block, size_t bytes, const void *caller) {
    if (!block || !counting || is_own(caller))
        return;
    Thread *thread = &state;
    const size_t usable = next.usable(const_cast<void *>(block));
    thread->balance += static_cast<int64_t>(usable);
    const int64_t now = thread->base + thread->balance;
    if (now > thread->high)
        thread->high = now;
    if (uint64_t *own = own_metrics()) {
        quipu_increase(own + QUIPU_ALLOCATIONS, 1);
        quipu_increase(own + QUIPU_ALLOCATED_BYTES, bytes);
        if (__builtin_expect(now > static_cast<int64_t>(own[QUIPU_HEAP_PEAK]), 0))
            __atomic_store_n(own + QUIPU_HEAP_PEAK, static_cast<uint64_t>(now), __ATOMIC_RELAXED);
    } else {
        thread->allocations++;
        thread->bytes += bytes;
    }
    if (__builtin_expect(usable >= thread->large || (thread->until -= static_cast<int64_t>(usable)) < 0, 0))
        allocated_slowly(thread, block, usable);
}

__attribute__((noinline)) void released_slowly(Thread *thread) {
    if (thread->low == 0)
        begin(thread);
    if (thread->balance < thread->low)
        share_balance(thread);
}

inline void count_released(size_t usable) {
    Thread *thread = &state;
    thread->balance -= static_cast<int64_t>(usable);
    if (uint64_t *own = own_metrics()) {
        quipu_increase(own + QUIPU_RELEASES, 1);
        quipu_increase(own + QUIPU_RELEASED_BYTES, usable);
    } else {
        thread->releases++;
        thread->released += usable;
    }
    if (__builtin_expect(thread->balance < thread->low, 0))
        released_slowly(thread);
}

__attribute__((noinline)) bool forget_slowly(const void *block, Share *share) {
    Thread *thread = &state;
    if (thread->busy)
        return false;
    thread->busy = true;
    if (thread->high > __atomic_load_n(&noted, __ATOMIC_RELAXED) && thread->low != 0 && thread->low != INT64_MAX) {
        share_balance(thread);
        note_highest(metrics ? path() : nullptr, before_shrinking);
    }
    const bool known = forget(block, share);
    thread->busy = false;
    return known;
}

inline bool forget_block(const void *block, Share *share) {
    return __builtin_expect(may_be_known(block), 0) && forget_slowly(block, share);
}

/* Returns the largest resident memory of the process in bytes (VmHWM of proc(5)); 0: not known. stdio is not used,
 * because it allocates memory. */
uint64_t resident_peak() {
    char text[4096];
    const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC));
    if (file < 0)
        return 0;
    const long length = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "VmHWM:");
    uint64_t kibibytes = 0;
    for (const char *c = line ? line + 6 : ""; *c && *c != '\n'; c++)
        if (*c >= '0' && *c <= '9')
            kibibytes = kibibytes * 10 + static_cast<uint64_t>(*c - '0');
    return kibibytes << 10;
}

void in_child() {
    after_fork();
    Thread *thread = &state;
    share_balance(thread);
    peak = total; /* the child begins with the heap of its parent */
    noted = 0;
}

int find_own_code(struct dl_phdr_info *library, size_t, void *) {
    if (!library->dlpi_name || !strstr(library->dlpi_name, "libquipu_mpi"))
        return 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const auto &part = library->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && part.p_flags & PF_X) {
            own_code = library->dlpi_addr + part.p_vaddr;
            own_size = part.p_memsz;
        }
    }
    return 1;
}

/* Returns the load address of the object that defines a function; null: not known. */
const void *file_of(const void *function) {
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : nullptr;
}

/* Writes the path of the counted allocator as an attribute, and as another attribute which allocations are not counted
 * or wrong. */
void describe() {
    Dl_info info;
    const void *const behind = file_of(reinterpret_cast<void *>(next.malloc));
    const char *problem = nullptr;
    if (file_of(dlsym(RTLD_DEFAULT, "malloc")) != file_of(reinterpret_cast<void *>(&describe)))
        problem = "allocations are not counted: the program contains an allocator; link it with the allocator "
                  "of the C library, or with a shared library";
    else if (behind != file_of(reinterpret_cast<void *>(next.usable)))
        problem = "sizes of the heap are wrong: the allocator has no malloc_usable_size; use another allocator";
    else if (file_of(dlsym(RTLD_DEFAULT, "_Znwm")) == behind)
        problem =
            "allocations by new (C++) are not counted: the allocator handles them without malloc; run the program with "
            "the allocator of the C library";
    if (problem)
        quipu_attribute("memory_problem", problem);
    if (dladdr(reinterpret_cast<void *>(next.malloc), &info) && info.dli_fname)
        quipu_attribute("allocator", info.dli_fname);
}

/* Completes the metrics of the running thread and of the heap. last: not 0 if the values are read for the last time. */
void before_values_are_read(int last) {
    if (!counting || !quipu_current || !quipu_current->own)
        return;
    quipu_node *node = find_metrics() ? path() : nullptr;
    if (!node)
        return;
    static bool described;
    if (!described)
        describe();
    described = true;
    count_earlier(&state, node);
    share_balance(&state);
    note_highest(node, before_shrinking);
    settle_peak(static_cast<uint64_t>(peak > 0 ? peak : 0), metrics + QUIPU_HEAP_HELD, root_of(node));
    quipu_node *top = node;
    while (top->up && top->up->region)
        top = top->up;
    if (top->region)
        outermost = top;
    raise_metric(outermost ? outermost : top, QUIPU_RESIDENT_PEAK, resident_peak());
    if (last)
        counting = false; /* the ranks reduce the values of this moment */
}

__attribute__((constructor)) void start() {
    (void)ready();
    if (!quipu_active() || !quipu_further_place || !next.usable) {
        counting = false;
        return;
    }
    has_thread_end = pthread_key_create(&thread_end, end) == 0;
    pthread_atfork(before_fork, after_fork, in_child);
    dl_iterate_phdr(find_own_code, nullptr);
}

} // namespace
} // namespace quipu::memory

extern "C" {

using namespace quipu::memory;

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void quipu_settle_memory(int last) { before_values_are_read(last); }
#define CALLER __builtin_return_address(0)

EXPORTED void *malloc(size_t bytes) {
    if (!ready())
        return allocate_early(bytes);
    void *block = next.malloc(bytes);
    allocated(block, bytes, CALLER);
    return block;
}

EXPORTED void *calloc(size_t count, size_t size) {
    if (!ready()) /* early memory is zero, because it is never used twice */
        return size && count > sizeof early / size ? nullptr : allocate_early(count * size);
    void *block = next.calloc(count, size);
    allocated(block, count * size, CALLER);
    return block;
}

EXPORTED void free(void *block) {
    if (!block || is_early(block) || !ready())
        return;
    if (counting && !is_own(CALLER)) {
        Share share;
        (void)forget_block(block, &share);
        count_released(next.usable(block));
    }
    next.free(block);
}

static void *change_size(void *block, size_t bytes, const void *caller) {
    if (is_early(block) || !ready()) {
        void *fresh = ready() ? malloc(bytes) : allocate_early(bytes);
        const size_t before = block ? early_size(block) : 0;
        if (fresh && block)
            memcpy(fresh, block, before < bytes ? before : bytes);
        return fresh;
    }
    if (!counting || is_own(caller))
        return next.realloc(block, bytes);
    const size_t before = block ? next.usable(block) : 0;
    Share share;
    const bool known = block && forget_block(block, &share);
    void *fresh = next.realloc(block, bytes);
    if (!fresh && bytes) {
        if (known)
            remember(block, share);
        return nullptr;
    }
    if (block)
        count_released(before);
    allocated(fresh, bytes, caller);
    return fresh;
}

EXPORTED void *realloc(void *block, size_t bytes) { return change_size(block, bytes, CALLER); }

EXPORTED void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return change_size(block, bytes, CALLER);
}

EXPORTED int posix_memalign(void **block, size_t alignment, size_t bytes) {
    if (!ready())
        return ENOMEM;
    const int failure = next.posix_memalign(block, alignment, bytes);
    if (!failure)
        allocated(*block, bytes, CALLER);
    return failure;
}

// NOLINTBEGIN(bugprone-macro-parentheses): names of functions
#define ALIGNED(name)                                                                                                  \
    EXPORTED void *name(size_t alignment, size_t bytes) {                                                              \
        void *block = ready() && next.name ? next.name(alignment, bytes) : nullptr;                                    \
        allocated(block, bytes, CALLER);                                                                               \
        return block;                                                                                                  \
    }
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define OF_PAGES(name)                                                                                                 \
    EXPORTED void *name(size_t bytes) {                                                                                \
        void *block = ready() && next.name ? next.name(bytes) : nullptr;                                               \
        allocated(block, bytes, CALLER);                                                                               \
        return block;                                                                                                  \
    }
OF_PAGES(valloc)
OF_PAGES(pvalloc)
// NOLINTEND(bugprone-macro-parentheses)
}
