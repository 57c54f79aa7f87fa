// SPDX-License-Identifier: Apache-2.0
/* MPI ends in the destructor of a static object, after main. */
#include <mpi.h>

namespace {
struct Environment {
    Environment() = default;
    Environment(const Environment &) = delete;
    Environment &operator=(const Environment &) = delete;
    ~Environment() {
        int begun = 0, ended = 0;
        MPI_Initialized(&begun);
        MPI_Finalized(&ended);
        if (begun && !ended)
            MPI_Finalize();
    }
};

Environment &environment() {
    static Environment only;
    return only;
}
} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    environment();
    double mine = 1, all = 0;
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all < mine;
}
