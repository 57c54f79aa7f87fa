// SPDX-License-Identifier: Apache-2.0
// What runs before main and in no region, by the clock of slow_lookup.c.
extern "C" int sleep_for(long nanoseconds);

static int slept = sleep_for(5000000000);

int main() { return slept; }
