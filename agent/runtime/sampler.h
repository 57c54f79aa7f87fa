/* Samples: at a fixed rate of processor time a signal comes to the running thread, and what passed since the last one
 * (processor time, counters of the processor) goes to the call path that is active. */
#ifndef QUIPU_SAMPLER_H
#define QUIPU_SAMPLER_H

#include "tree.h"

namespace quipu {

/* What QUIPU_SAMPLE and QUIPU_COUNTERS ask for. A mistake in them ends the process. Under the lock, before the profile
 * is made: samples and counters are further metrics of its nodes. */
void read_sampling_options();
/* How many metrics nodes have beside those of metrics.def, and their lines for the header of the profile. */
uint32_t sampled_metrics();
const char *sampled_metric_lines();

/* The calling thread is sampled from here on, if that was asked for. */
void begin_sampling();
/* What passed since the last sample goes to the active call path. */
void sample_now();
void end_sampling();
/* Of all threads: the program gives up system calls. Under the lock. */
void stop_sampling();
/* In the child of a fork, whose events and timers are the parent's. */
QUIPU_BARE void forget_sampling();
/* At the end of the process: what readers should know of the samples. Under the lock. */
void describe_sampling();

} // namespace quipu

#endif
