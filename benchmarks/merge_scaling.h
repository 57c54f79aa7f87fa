/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic ranks of merge_scaling.py. */
#ifndef MERGE_SCALING_H
#define MERGE_SCALING_H

#include "reduce.h"

/* Returns a synthetic tree of a rank. The trees of all ranks are equal except for every 40th call path, which only some
 * ranks have. Ends the program if there is no memory. */
struct quipu_snapshot made_up(uint32_t paths, uint32_t metrics, int rank);

#endif
