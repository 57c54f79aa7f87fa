/* What measuring costs in this process. */
#ifndef QUIPU_OVERHEAD_H
#define QUIPU_OVERHEAD_H

namespace quipu {

/* Nanoseconds, at best: with warm caches, and of several attempts the quickest. */
struct Overhead {
    double pair = 0;    /* quipu_enter and quipu_exit of a region, with the clock that was chosen */
    double inside = 0;  /* the part of it that the region's own time contains; the rest is in its caller's */
    double quiet = 0;   /* quipu_count: a visit of a region without a hook */
    double counter = 0; /* adding to one counter in memory */
    double clock = 0;   /* one reading of the clock */
};

/* Measures on a call tree of its own, of which nothing gets into the profile; takes about a tenth of a millisecond.
 * Under the lock, when the clock is chosen. */
Overhead measure_overhead();

} // namespace quipu

#endif
