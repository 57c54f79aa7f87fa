// SPDX-License-Identifier: Apache-2.0
// What runs before main and in no region, and a team that waits for its next work, by the clock of slow_lookup.c.
extern "C" int sleep_for(long nanoseconds);

static int slept = sleep_for(1000000000);

__attribute__((noinline)) static int team() {
    int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
    members += 1;
    return members;
}

int main() {
    const int members = team();
    slept += sleep_for(5000000000);
    return members + team() == 6 ? slept : 1;
}
