// SPDX-License-Identifier: Apache-2.0
/* Regions that the program names at run time.
 *
 * Each thread has a list of its open regions with their frames. A function may begin a region and return, or end a
 * region of its caller. If a frame ends before its region, reopen() creates another frame. If a region ends while other
 * frames are above its frame, the frame represents the code around the region from then on.
 *
 * Instrumented code counts in the counters of its function, also inside of a region. At the end of a region, the region
 * gets the work that the function did between begin and end: the difference of its counters, times their weights. */
#define QUIPU_REGION_RUNTIME
#include "annotations.h"
#include "hot.h"
#include "quipu/region.h"
#include "settings.h"

#include <stdio.h>
#include <string.h>

namespace quipu {
namespace {

constexpr uint32_t most_marks = 1 << 16;  /* open regions of a thread; only address space until it is used */
constexpr uint64_t most_before = 1 << 18; /* most stored counters of a thread */
constexpr size_t longest_name = 1024;     /* of the name of a region */
constexpr uint32_t most_parameters = 64;

struct Named {
    quipu_region region;
    uint64_t hash;
    Named *next;
};

constexpr size_t buckets = 4096;
Named *named[buckets]; /* added at the head under the lock; searched without lock */

struct Parameter {
    char name[64];
    double value;
};
Parameter parameters[most_parameters];
uint32_t parameter_count;

/* Wrong nesting: a text about the first case, the number of cases, and the number that is already in the profile. */
char problem[2 * longest_name + 256];
uint64_t problems, described;

uint64_t hash_of(const char *text, size_t length) { return hash_more(text, length, 14695981039346656037u); }

/* Copies a name in the form of a profile: not empty, and without control characters, which separate its records. */
size_t clean_name(const char *name, char *clean) {
    size_t length = 0;
    for (; name && name[length] && length < longest_name - 1; length++)
        clean[length] = static_cast<unsigned char>(name[length]) < 0x20 || name[length] == 0x7f ? ' ' : name[length];
    while (length > 0 && (name[length] & 0xc0) == 0x80) /* not within a UTF-8 character */
        length--;
    if (length == 0)
        length = static_cast<size_t>(snprintf(clean, longest_name, "(no name)"));
    clean[length] = '\0';
    return length;
}

quipu_region *find_named(uint64_t hash, const char *name) {
    for (Named *one = __atomic_load_n(&named[hash % buckets], __ATOMIC_ACQUIRE); one; one = one->next)
        if (one->hash == hash && strcmp(one->region.name, name) == 0)
            return &one->region;
    return nullptr;
}

/* Returns the region with this name, created at first use; null if there is no memory. */
quipu_region *region_named(const char *name) {
    char clean[longest_name];
    const size_t length = clean_name(name, clean);
    const uint64_t hash = hash_of(clean, length);
    if (quipu_region *known = find_named(hash, clean))
        return known;
    if (is_locked_here())
        return nullptr;
    const Locked locked;
    if (quipu_region *known = find_named(hash, clean))
        return known;
    auto *fresh = static_cast<Named *>(keep(sizeof(Named) + length + 1));
    if (!fresh)
        return nullptr;
    auto *text = reinterpret_cast<char *>(fresh + 1);
    memcpy(text, clean, length + 1);
    fresh->region.name = text;
    fresh->region.kind = QUIPU_USER;
    fresh->hash = hash;
    fresh->next = named[hash % buckets];
    __atomic_store_n(&named[hash % buckets], fresh, __ATOMIC_RELEASE);
    return &fresh->region;
}

quipu_thread *annotating_thread() {
    if (!active)
        return nullptr;
    return ranks ? running_rank() : quipu_current && !is_idle(quipu_current) ? quipu_current : begin_thread();
}

/* Marks that a thread is inside of a function of this file. False if the thread already was (in a signal handler), is
 * not measured, or has no memory. */
class Busy {
  public:
    explicit Busy(quipu_thread *thread) : state(thread ? annotations_of(thread) : nullptr) {
        if (state && state->busy)
            state = nullptr;
        if (state)
            state->busy = true;
    }
    ~Busy() {
        if (state)
            state->busy = false;
    }
    Busy(const Busy &) = delete;
    Busy &operator=(const Busy &) = delete;
    Annotations *operator->() const { return state; }
    explicit operator bool() const { return state; }

  private:
    static Annotations *annotations_of(quipu_thread *thread) {
        Thread *mine = own(thread);
        if (mine->annotations || is_locked_here() || !may_call_system())
            return mine->annotations;
        const Locked locked;
        auto *fresh = static_cast<Annotations *>(keep(sizeof(Annotations)));
        auto *marks = fresh ? static_cast<Mark *>(reserve(sizeof(Mark) * most_marks)) : nullptr;
        auto *before = marks ? static_cast<uint64_t *>(reserve(sizeof(uint64_t) * most_before)) : nullptr;
        if (!before)
            return nullptr;
        fresh->marks = marks;
        fresh->before = before;
        return mine->annotations = fresh;
    }

    Annotations *state;
};

void note_problem(const char *first, const char *name, const char *second, const char *other, const char *third) {
    if (__atomic_fetch_add(&problems, 1, __ATOMIC_RELAXED) > 0 || is_locked_here())
        return;
    const Locked locked;
    snprintf(problem, sizeof problem, "region '%.200s' %s%.200s%s", name, first, other ? other : "",
             other ? second : third);
}

bool is_of_stack(const Thread *thread, const Frame *frame) {
    return frame >= thread->frames && frame <= thread->stack->limit;
}

/* Returns the function whose code runs in the innermost frame, if its counters are in memory; otherwise null. */
Node *counting_function(quipu_thread *thread) {
    const Thread *mine = own(thread);
    const Frame *frame = thread->top;
    Node *active = thread->here; /* node of a function without a frame, or of the innermost frame */
    while (active && (frame > mine->frames || active != frame->node)) {
        Node *node = active;
        const uint32_t owner = static_cast<uint32_t>(node->owner); /* id of the node whose counters it uses; 0: none */
        while (owner && node && node->id != owner)
            node = node->up;
        const RegionRecord *region = node && node->region ? region_of(node->region) : nullptr;
        if (region && region->rows > 1)
            return node;
        if (!region || !(region->is_user || region->index))
            return nullptr;
        const bool is_of_frame = active == frame->node;
        active = is_of_frame ? frame->back : frame->node;
        frame -= is_of_frame;
    }
    return nullptr;
}

/* Returns the record of moved work from one node to another, created at first use; null if there is no memory. */
Gift *gift_of(Thread *thread, Node *from, Node *to) {
    Gift *&place = thread->annotations->gifts[(from->id * 31 + to->id) % (sizeof Annotations::gifts / sizeof(Gift *))];
    for (Gift *gift = place; gift; gift = gift->next)
        if (gift->from == from && gift->to == to)
            return gift;
    if (is_locked_here())
        return nullptr;
    const Locked locked;
    auto *fresh = static_cast<Gift *>(keep(sizeof(Gift)));
    if (!fresh)
        return nullptr;
    fresh->from = from;
    fresh->to = to;
    fresh->next = place;
    __atomic_store_n(&place, fresh, __ATOMIC_RELEASE);
    return fresh;
}

quipu_metric metric_of(uint32_t place) {
    return place == 0 ? QUIPU_VISITS : static_cast<quipu_metric>(QUIPU_BLOCKS + place - 1);
}

void move(Gift *gift, uint32_t place, uint64_t amount) {
    gift->amount[place] += amount;
    quipu_add_alone(gift->to, metric_of(place), amount);
    quipu_add_alone(gift->from, metric_of(place), uint64_t{0} - amount);
}

/* Moves work from a function to a region. amounts: visits, then effort. Negative amounts stay with the function, so
 * that no metric of a region becomes negative. */
void give(Thread *thread, Node *from, Node *to, const uint64_t *amounts) {
    Gift *gift = gift_of(thread, from, to);
    for (uint32_t place = 0; gift && place <= QUIPU_WEIGHTED; place++)
        if (static_cast<int64_t>(amounts[place]) > 0)
            move(gift, place, amounts[place]);
}

/* Returns the value of a metric for a function or an inlined function: the moved amount plus the counted value. */
uint64_t complete_value(const Node *node, uint32_t place) {
    const RegionRecord *region = region_of(node->region);
    const Node *counting = node;
    while (node->owner && counting && counting->id != node->owner)
        counting = counting->up;
    uint64_t value = get(node->metrics[metric_of(place)]);
    if (!region || !counting)
        return value;
    const uint64_t visits = get(counting->metrics[QUIPU_VISITS]);
    const auto times_of = [&](uint64_t row) { return row == 0 ? visits : get(counting->counters[row - 1]); };
    for (uint32_t row = 0; !node->owner && place > 0 && row < region->rows; row++)
        value += times_of(row) * static_cast<uint64_t>(region->weights[size_t{row} * QUIPU_WEIGHTED + place - 1]);
    for (uint32_t at = 0; at < region->scope_row_count; at++) {
        const int64_t *row = region->scope_rows + size_t{at} * QUIPU_SCOPE_ROW;
        if (node->owner || place == 0)
            value += times_of(static_cast<uint64_t>(row[0])) * static_cast<uint64_t>(row[1 + place]);
    }
    return value;
}

/* Corrects regions that got too much. The counters of a function are complete only after its end. If the begin or end
 * of a region is on a path that is counted later, the region gets more than the function has. The function takes the
 * missing amount back. Call under the lock. */
void take_back(const Annotations *all) {
    for (Gift *first : all->gifts)
        for (Gift *gift = first; gift; gift = gift->next)
            for (uint32_t place = 0; place <= QUIPU_WEIGHTED; place++) {
                if (!gift->amount[place])
                    continue;
                const auto value = static_cast<int64_t>(complete_value(gift->from, place));
                const uint64_t lacks = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : 0;
                if (lacks)
                    move(gift, place, uint64_t{0} - (lacks < gift->amount[place] ? lacks : gift->amount[place]));
                else if (value > 0 && place > 0 && gift->from->owner && complete_value(gift->from, 0) == 0)
                    move(gift, place, static_cast<uint64_t>(value)); /* all its visits belong to the region */
            }
}

/* Returns whether the node, or one of its callers, belongs to this region, or to another region with the same name (for
 * example, the function inlined elsewhere). */
bool is_below(const Node *node, const RegionRecord *region) {
    const size_t length = strcspn(region->text, "\x1f") + 1; /* length of the name */
    for (; node && node->region; node = node->up) {
        const RegionRecord *around = region_of(node->region);
        if (around && strncmp(around->text, region->text, length) == 0)
            return true;
    }
    return false;
}

/* Moves the work that `function` counted since the counters had the values `before` to the region of `to`. Updates
 * `before`. */
void give_effort(Thread *thread, Node *function, uint64_t *before, Node *to) {
    const RegionRecord *region = region_of(function->region);
    uint64_t effort[1 + QUIPU_WEIGHTED] = {};
    bool any = false;
    for (uint32_t row = 1; row < region->rows; row++) {
        const uint64_t times = get(function->counters[row - 1]) - before[row - 1];
        any |= times != 0;
        for (uint32_t column = 0; times && column < QUIPU_WEIGHTED; column++)
            effort[1 + column] += times * static_cast<uint64_t>(region->weights[size_t{row} * QUIPU_WEIGHTED + column]);
    }
    if (!any)
        return;
    give(thread, function, to, effort);
    for (uint32_t i = 1; function->scopes && i < region->scopes; i++) {
        const RegionRecord *scope = region_of(region->id + i);
        uint64_t of_scope[1 + QUIPU_WEIGHTED] = {};
        bool some = false;
        for (uint32_t at = 0; at < scope->scope_row_count; at++) {
            const int64_t *row = scope->scope_rows + size_t{at} * QUIPU_SCOPE_ROW;
            const uint64_t times = row[0] > 0 ? get(function->counters[row[0] - 1]) - before[row[0] - 1] : 0;
            for (uint32_t column = 0; times && column <= QUIPU_WEIGHTED; column++)
                of_scope[column] += times * static_cast<uint64_t>(row[1 + column]);
            some |= times != 0;
        }
        Node *inner = some && is_below(to, scope) ? to : nullptr; /* the scope began the region, and is part of it */
        if (inner)
            of_scope[0] = 0;
        if (some && !inner && !is_locked_here()) {
            const Locked locked;
            inner = annotated_scope(thread, to, scope);
        }
        if (inner)
            give(thread, function->scopes[i], inner, of_scope);
    }
    for (uint32_t row = 1; row < region->rows; row++)
        before[row - 1] = get(function->counters[row - 1]);
}

/* Returns the innermost open region of the running context; null if there is none. */
Mark *innermost(const Thread *thread, const Annotations *all) {
    for (uint32_t i = all->count; i-- > 0;)
        if (!all->marks[i].ended && is_of_stack(thread, all->marks[i].frame))
            return &all->marks[i];
    return nullptr;
}

/* Moves to the innermost open region the work that the function around it has counted since the last call. */
void settle_effort(quipu_thread *thread, const Annotations *all) {
    const Mark *mark = innermost(own(thread), all);
    if (mark && mark->function)
        give_effort(own(thread), mark->function, mark->before, mark->frame->node);
}

/* Stores in `mark`, a new region, the function whose code runs in it, and the values of the counters of this function.
 * around: the innermost open region, or null. */
void note_function(quipu_thread *thread, Annotations *all, Mark *mark, const Mark *around) {
    Node *function = counting_function(thread);
    mark->function = nullptr;
    mark->before = nullptr;
    if (!function)
        return;
    if (around && around->function == function) {
        mark->function = function;
        mark->before = around->before;
        return;
    }
    uint64_t *before = all->before;
    for (uint32_t i = 0; i < all->count; i++)
        if (const Mark &other = all->marks[i]; other.before) {
            uint64_t *end = other.before + region_of(other.function->region)->rows;
            before = end > before ? end : before;
        }
    const uint32_t rows = region_of(function->region)->rows;
    if (static_cast<uint64_t>(before - all->before) + rows > most_before)
        return;
    for (uint32_t row = 1; row < rows; row++)
        before[row - 1] = get(function->counters[row - 1]);
    mark->function = function;
    mark->before = before;
}

/* Removes ended regions whose frames are innermost. */
void drop_ended(quipu_thread *thread, Annotations *all) {
    Thread *mine = own(thread);
    while (all->count > 0) {
        const Mark &mark = all->marks[all->count - 1];
        if (!mark.ended || !is_of_stack(mine, mark.frame) || thread->top != last_of(mine, mark.frame) ||
            thread->here != thread->top->node)
            return;
        all->count--;
        quipu_exit(mark.frame);
    }
}

/* Handles a function without a frame whose surrounding region has ended. Pushes another frame, so that the end of the
 * function finds a different innermost frame and calls the runtime. */
void guard(quipu_thread *thread) {
    const Annotations *all = own(thread)->annotations;
    if (thread->here == thread->top->node || thread->top == thread->limit)
        return;
    for (uint32_t i = all->count; i-- > 0;)
        if (all->marks[i].ended && all->marks[i].frame == thread->top) {
            quipu_push(thread, thread->here, own(thread)->nowhere);
            return;
        }
}

/* Ends an open region, whose frame may be at any depth. last: the end of the list of regions. */
void end_mark(quipu_thread *thread, Mark *mark, const Mark *last) {
    Thread *mine = own(thread);
    mark->ended = true;
    if ((thread->top == mark->frame && thread->here == mark->frame->node) || last_of(mine, mark->frame) != mark->frame)
        return; /* drop_ended() removes the frame, or the frame already counts with the caller (folding.cpp) */
    charge_any_time(thread);
    /* The frames of ended regions now represent the code around the regions. */
    for (const Mark *above = mark; above < last; above++) {
        if (!above->ended || !is_of_stack(mine, above->frame) || last_of(mine, above->frame) != above->frame)
            continue;
        Node *before = above->frame->node, *around = above->frame->back;
        put(above->frame->node, around);
        put(above->frame->counters, mine->nowhere);
        if (above->frame < thread->top && above->frame[1].back == before)
            put(above->frame[1].back, around);
    }
    guard(thread);
}

void begin_named(quipu_thread *thread, Annotations *all, quipu_region *region) {
    if (all->count == most_marks) {
        note_problem("was begun inside of too many other regions and is not measured", region->name, "", nullptr, "");
        return;
    }
    settle_effort(thread, all);
    drop_ended(thread, all);
    const Mark *around = innermost(own(thread), all);
    Mark &mark = all->marks[all->count];
    mark.region = region;
    mark.ended = false;
    note_function(thread, all, &mark, around);
    mark.frame = quipu_enter(region);
    Link *link = own(thread)->links.find(mark.frame->back, id_of(region));
    mark.at = mark.frame->node;
    mark.visits = is_of_stack(own(thread), mark.frame) && link ? link->visits : nullptr;
    if (is_of_stack(own(thread), mark.frame)) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        all->count++;
    }
}

void end_named(quipu_thread *thread, Annotations *all, const char *name) {
    Thread *mine = own(thread);
    char clean[longest_name];
    const quipu_region *region = nullptr;
    if (name) {
        const size_t length = clean_name(name, clean);
        region = find_named(hash_of(clean, length), clean);
    }
    Mark *found = nullptr;
    for (uint32_t i = all->count; i-- > 0 && !found;)
        if (Mark &mark = all->marks[i];
            !mark.ended && is_of_stack(mine, mark.frame) && (!name || mark.region == region))
            found = &mark;
    if (!found) {
        note_problem("was ended although it was not open: the end was ignored", name ? clean : "(any)", "", nullptr,
                     "");
        return;
    }
    settle_effort(thread, all);
    for (Mark *mark = all->marks + all->count; mark-- > found;) {
        if (mark->ended || !is_of_stack(mine, mark->frame))
            continue;
        if (mark != found)
            note_problem("was ended while '", found->region->name, "', which began later, was open: both ended there",
                         mark->region->name, "");
        end_mark(thread, mark, all->marks + all->count);
        drop_ended(thread, all);
    }
}

/* Copies a name, with _ in place of characters that the name of a parameter may not contain. */
void parameter_name(const char *name, char *clean, size_t size) {
    size_t to = 0;
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    for (size_t from = 0; name && name[from] && to < size - 2; from++) {
        const bool digit = name[from] >= '0' && name[from] <= '9';
        if (to == 0 && digit)
            clean[to++] = '_';
        clean[to++] = is_letter(name[from]) || digit ? name[from] : '_';
    }
    clean[to] = '\0';
}

void set_parameter(const char *name, double value) {
    char text[40], key[96];
    if (value > -9e15 && value < 9e15 && static_cast<double>(static_cast<long long>(value)) == value)
        snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    else
        snprintf(text, sizeof text, "%.17g", value);
    for (char *c = text; *c; c++) /* replace the decimal separator of another locale */
        if (!strchr("0123456789+-einfa", *c))
            *c = '.';
    snprintf(key, sizeof key, "parameter:%s", name);
    set_attribute(key, text);
}

/* Returns whether a parameter is recorded. QUIPU_PARAMETERS is `off`, or names separated by commas. By default all
 * parameters are recorded. */
bool is_wanted(const char *name) {
    const char *wanted = setting("QUIPU_PARAMETERS");
    if (!wanted || !*wanted)
        return true;
    const size_t length = strlen(name);
    for (const char *at = wanted; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : nullptr)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return strcmp(wanted, "off") != 0;
    return false;
}

bool is_main(const Node *node) {
    const RegionRecord *region = node->region ? region_of(node->region) : nullptr;
    return region && strncmp(region->text, "main\x1f", 5) == 0;
}

void begin_phase(quipu_thread *thread, const quipu_region *region, long long iteration) {
    if (PhaseRecord *phase = phase_of(own(thread), region))
        begin_iteration(thread, phase, iteration);
}

__attribute__((noinline)) void begin_region(const char *name) {
    quipu_thread *thread = annotating_thread();
    const Busy all(thread);
    quipu_region *region = all ? region_named(name) : nullptr;
    if (region)
        begin_named(thread, all.operator->(), region);
}

__attribute__((noinline)) void end_region(const char *name) {
    quipu_thread *thread = annotating_thread();
    const Busy all(thread);
    if (all)
        end_named(thread, all.operator->(), name);
}

__attribute__((noinline)) void begin_phase_of(const char *name, long long iteration) {
    quipu_thread *thread = annotating_thread();
    const Busy all(thread);
    quipu_region *region = all ? region_named(name) : nullptr;
    if (!region)
        return;
    begin_named(thread, all.operator->(), region);
    begin_phase(thread, region, iteration);
}

__attribute__((noinline)) void end_phase(const char *name) {
    quipu_thread *thread = annotating_thread();
    const Busy all(thread);
    if (!all)
        return;
    const Mark *mark = innermost(own(thread), all.operator->());
    const quipu_region *region = name ? region_named(name) : mark ? mark->region : nullptr;
    end_named(thread, all.operator->(), name);
    if (PhaseRecord *phase = region ? phase_of(own(thread), region) : nullptr)
        end_iteration(thread, phase);
}

__attribute__((noinline)) void name_parameter(const char *name, double value) {
    char clean[sizeof(Parameter::name)];
    parameter_name(name, clean, sizeof clean);
    if (!*clean || !is_wanted(clean) || is_locked_here() || !open_profile())
        return;
    const Locked locked;
    for (uint32_t i = 0; i < parameter_count; i++)
        if (strcmp(parameters[i].name, clean) == 0) {
            if (parameters[i].value != value && __atomic_fetch_add(&problems, 1, __ATOMIC_RELAXED) == 0)
                snprintf(problem, sizeof problem, "parameter %s got a second value: the first value is kept", clean);
            return;
        }
    if (parameter_count == most_parameters)
        return;
    memcpy(parameters[parameter_count].name, clean, sizeof clean);
    parameters[parameter_count++].value = value;
    set_parameter(clean, value);
}

} // namespace

Node *going_on(const quipu_thread *thread, const Frame *top, Node *node) {
    const Annotations *all = own(thread)->annotations;
    for (uint32_t i = all->count; i-- > 0;) {
        const Mark &mark = all->marks[i];
        if (is_of_stack(own(thread), mark.frame) && mark.frame <= top && mark.at == node)
            return mark.ended ? mark.frame->node : node;
    }
    return node;
}

void after_end(quipu_thread *thread, const Frame *frame, const Node *ended, bool cuts) {
    if (cuts)
        reopen(thread, frame, ended);
    guard(thread);
}

void reopen(quipu_thread *thread, const Frame *frame, const Node *ended) {
    Thread *mine = own(thread);
    Annotations *all = mine->annotations;
    const Mark *inner = innermost(mine, all);
    if (inner && inner->frame >= frame && inner->function && inner->function == counting_function(thread))
        give_effort(mine, inner->function, inner->before, inner->frame->node);
    uint32_t first = all->count;
    while (first > 0 && all->marks[first - 1].frame >= frame && is_of_stack(mine, all->marks[first - 1].frame))
        first--;
    const uint32_t end = ended && is_main(ended) ? first : all->count; /* the end of main ends all regions */
    all->count = first;
    drop_ended(thread, all);
    for (uint32_t i = first; i < end; i++) {
        const Mark cut = all->marks[i];
        if (cut.ended)
            continue;
        begin_named(thread, all, cut.region);
        if (cut.visits) /* the same visit continues */
            quipu_increase(cut.visits, ~uint64_t{0});
    }
}

Node *annotated_scope(Thread *thread, Node *from, const RegionRecord *scope) {
    const uint64_t function = scope->id - scope->index;
    Node *base = from;
    for (; base && base->region; base = base->up) {
        const RegionRecord *region = region_of(base->region);
        if (base->region == function || !region)
            return nullptr;
        if (region->is_user)
            break;
    }
    if (!base || !base->region)
        return nullptr;
    if (const Link *known = thread->links.find(base, scope->id))
        return known->to;
    const RegionRecord *outer = region_of(function + scope->parent);
    const bool began_inside = scope->parent && is_below(base, outer);
    Node *parent = scope->parent && !began_inside ? annotated_scope(thread, base, outer) : base;
    Node *node = parent ? new_node(thread, parent, scope->id, 0) : nullptr;
    auto *link = node ? static_cast<Link *>(keep(sizeof(Link))) : nullptr;
    if (!link)
        return nullptr;
    *link = {base, scope->id, node, thread->nowhere, &node->metrics[QUIPU_VISITS], nullptr};
    return thread->links.add(link) ? node : nullptr;
}

void forget_annotations(Thread *thread) {
    if (thread->annotations) {
        thread->annotations->count = 0;
        thread->annotations->busy = false;
    }
}

void describe_annotations() {
    if (problems && problems != described) {
        char text[sizeof problem + 64];
        if (problems == 1)
            snprintf(text, sizeof text, "%s", problem);
        else
            snprintf(text, sizeof text, "%s (and %llu more)", problem, static_cast<unsigned long long>(problems - 1));
        set_attribute("annotation_problem", text);
        described = problems;
    }
    for_each_thread([](quipu_thread *thread) {
        if (const Annotations *all = own(thread)->annotations) {
            take_back(all);
            describe_iterations(own(thread));
        }
    });
}

} // namespace quipu

/* Variables of the Fortran module quipu_region, which is part of the program. */
extern "C" {
extern void *quipu_hook_region_begin __attribute__((weak)), *quipu_hook_region_end __attribute__((weak)),
    *quipu_hook_phase_begin __attribute__((weak)), *quipu_hook_phase_end __attribute__((weak)),
    *quipu_hook_parameter __attribute__((weak));
}

namespace {

__attribute__((constructor(210))) void set_hooks() {
    if (!quipu::active)
        return;
    const struct {
        void **hook;
        void *function;
    } hooks[] = {
        {&quipu_hook_region_begin, reinterpret_cast<void *>(quipu_region_begin)},
        {&quipu_hook_region_end, reinterpret_cast<void *>(quipu_region_end)},
        {&quipu_hook_phase_begin, reinterpret_cast<void *>(quipu_phase_begin)},
        {&quipu_hook_phase_end, reinterpret_cast<void *>(quipu_phase_end)},
        {&quipu_hook_parameter, reinterpret_cast<void *>(quipu_parameter)},
    };
    for (const auto &entry : hooks)
        if (entry.hook)
            *entry.hook = entry.function;
}

} // namespace

extern "C" {

void quipu_region_begin(const char *name) {
    if (__builtin_expect(quipu::active, 0))
        quipu::begin_region(name);
}

void quipu_region_end(const char *name) {
    if (__builtin_expect(quipu::active, 0))
        quipu::end_region(name);
}

void quipu_phase_begin(const char *name, long long iteration) {
    if (__builtin_expect(quipu::active, 0))
        quipu::begin_phase_of(name, iteration);
}

void quipu_phase_end(const char *name) {
    if (__builtin_expect(quipu::active, 0))
        quipu::end_phase(name);
}

void quipu_parameter(const char *name, double value) {
    if (__builtin_expect(quipu::active, 0))
        quipu::name_parameter(name, value);
}

const char *quipu_region_name(const char *name) {
    const quipu_region *region = quipu::active ? quipu::region_named(name) : nullptr;
    return region ? region->name : nullptr;
}
}
