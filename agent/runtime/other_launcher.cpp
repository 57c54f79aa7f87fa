// SPDX-License-Identifier: Apache-2.0
/* A script may call a launcher by its path. Quipu's script for this launcher, which comes first in PATH, then does not
 * run. This file detects such launchers among the parents of the process, up to quipu-exec. Environment variables alone
 * would also show the launcher of an outer job, because ranks inherit its variables. */
#include "other_launcher.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace quipu {

namespace {

/* Processes that start ranks. A '*' at the end of a name matches any rest. rank, ranks: the environment variables with
 * the rank of a process and with the number of ranks; null if there are none.
 */
struct Kind {
    const char *process, *rank, *ranks;
};
constexpr const char *ompi_rank = "OMPI_COMM_WORLD_RANK", *ompi_size = "OMPI_COMM_WORLD_SIZE";
constexpr Kind kinds[] = {
    {"mpirun", ompi_rank, ompi_size},    {"mpirun.openmpi", ompi_rank, ompi_size},
    {"mpiexec", ompi_rank, ompi_size},   {"mpiexec.openmpi", ompi_rank, ompi_size},
    {"orte*", ompi_rank, ompi_size},     {"prte*", ompi_rank, ompi_size},
    {"hydra_*", "PMI_RANK", "PMI_SIZE"}, {"slurmstepd*", "SLURM_PROCID", "SLURM_NTASKS"},
    {"pals*", "PMI_RANK", "PMI_SIZE"},   {"smpirun", nullptr, nullptr},
};

bool is_called(const char *name, const char *pattern) {
    const size_t length = strlen(pattern);
    return pattern[length - 1] == '*' ? strncmp(name, pattern, length - 1) == 0 : strcmp(name, pattern) == 0;
}

/* Reads the name of a process from its stat file ("4711 (name) S 4710 ..."), and returns its parent. If the file cannot
 * be read, returns 0 and leaves the name as it is.
 */
long parent_of(long process, char *name, size_t size) {
    char path[48], text[256];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *begin = strchr(text, '(');
    char *end = strrchr(text, ')');
    if (!begin || !end || end[1] != ' ' || !end[2])
        return 0;
    *end = '\0';
    snprintf(name, size, "%s", begin + 1);
    return strtol(end + 3, nullptr, 10);
}

const char *variable(const char *name) {
    const char *text = name ? getenv(name) : nullptr;
    if (!text || !*text)
        return nullptr;
    char *end = nullptr;
    return strtol(text, &end, 10) >= 0 && !*end ? text : nullptr;
}

} // namespace

bool find_other_launcher(long first, OtherLauncher *found) {
    long process = getpid();
    for (int generation = 0; generation < 64 && process > 1 && process != first; generation++) {
        char name[17] = "";
        const long parent = parent_of(process, name, sizeof name);
        for (const Kind &kind : kinds) {
            if (generation == 0 || !is_called(name, kind.process))
                continue;
            const char *rank = variable(kind.rank);
            if (!rank && kind.rank)
                continue; /* a program with this name that is not a launcher */
            memcpy(found->launcher, name, sizeof name);
            found->rank = rank;
            found->ranks = variable(kind.ranks);
            return true;
        }
        process = parent;
    }
    return false;
}

} // namespace quipu
