/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of quipu_count_missed and quipu_enter_missed (inlined.h): a quick one that uses general registers only, and
 * another one for everything else. */
#ifndef QUIPU_MISSED_H
#define QUIPU_MISSED_H

#include "inlined.h"

extern "C" {
/* The link or frame if the table of the thread has the link; else NULL, and nothing happened. */
struct quipu_link *quipu_count_known(struct quipu_region *region, struct quipu_link **slot);
struct quipu_frame *quipu_enter_known(struct quipu_region *region, struct quipu_link **slot);
/* quipu_enter, which the slot remembers. */
struct quipu_frame *quipu_enter_slowly(struct quipu_region *region, struct quipu_link **slot);
/* A link whose `visits` and `counters` the visit is to be added to; never NULL. */
struct quipu_link *quipu_count_slowly(struct quipu_region *region, struct quipu_link **slot);
}

#endif
