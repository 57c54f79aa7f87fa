/* SPDX-License-Identifier: Apache-2.0 */
/* quipu-exec PROGRAM ARGS…: the launcher (mpirun) starts quipu-exec once per rank, in place of the measured program.
 *
 * quipu-exec reads its rank from environment variables of the launcher, and writes a file about the rank to $QUIPU_DIR.
 * On the first rank of a node it starts the node agent, a process that observes the node. It adds the libraries of
 * Quipu to LD_PRELOAD. Finally it replaces itself by the program (exec). It is written in C, because starting Python on
 * every rank would take too long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The environment variables of one kind of launcher. The environment may also contain variables of other launchers or
 * of a batch system, so quipu-exec reads only the variables of the launcher that Quipu started. */
struct variables {
    const char *family; /* value of QUIPU_LAUNCHER */
    /* Variables with the rank, the number of ranks, and the rank on its node. The first one that is set is used. */
    const char *rank[6], *size[6], *local[6];
};
static const struct variables families[] = {
    {"openmpi", {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}, {"OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_RANK"}},
    {"mpich",
     {"PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK"},
     {"PMI_SIZE", "MV2_COMM_WORLD_SIZE"},
     {"MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"}},
    {"slurm", {"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, {"SLURM_LOCALID"}},
    {"none", {NULL}, {NULL}, {NULL}},
    {"smpi", {NULL}, {NULL}, {NULL}},
};
static const struct variables any_family = {
    "",
    {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"},
    {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"},
};

/* Returns the variables of the launcher that Quipu started; without QUIPU_LAUNCHER (a user calls quipu-exec), the
 * variables of any launcher. */
static const struct variables *launcher_variables(void) {
    const char *family = getenv("QUIPU_LAUNCHER");
    for (size_t i = 0; family && i < sizeof families / sizeof *families; i++)
        if (strcmp(family, families[i].family) == 0)
            return &families[i];
    return &any_family;
}

/* Returns the value of the first of these variables that contains a number from 0 on; `otherwise` if there is none. */
static long number_of(const char *const *names, long otherwise) {
    for (; *names; names++) {
        const char *text = getenv(*names);
        char *end;
        if (!text || !*text)
            continue;
        long value = strtol(text, &end, 10);
        if (!*end && value >= 0)
            return value;
    }
    return otherwise;
}

static void set_number(const char *name, long value) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

/* Returns the length in bytes of the UTF-8 character at c (RFC 3629, section 4); 0 if it is invalid. */
static int character(const unsigned char *c) {
    const int length = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    const bool too_long = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    const bool no_character = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);
    return too_long || no_character ? 0 : length;
}

/* Writes a JSON string. Bytes that are not UTF-8 become surrogates, as in file names of Python (PEP 383). */
static void write_json_string(FILE *file, const char *text) {
    fputc('"', file);
    int length;
    for (const unsigned char *c = (const unsigned char *)text; *c; c += length ? length : 1) {
        length = character(c);
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else if (length == 0)
            fprintf(file, "\\udc%02x", *c);
        else
            fwrite(c, 1, (size_t)length, file);
    }
    fputc('"', file);
}

/* Writes a JSON list of the CPUs that this rank may use. */
static void write_affinity(FILE *file) {
    size_t bytes = CPU_ALLOC_SIZE(4096);
    cpu_set_t *set = CPU_ALLOC(4096);
    const char *comma = "";
    fputc('[', file);
    if (set && sched_getaffinity(0, bytes, set) == 0) {
        for (int cpu = 0; cpu < 4096; cpu++) {
            if (CPU_ISSET_S(cpu, bytes, set)) {
                fprintf(file, "%s%d", comma, cpu);
                comma = ",";
            }
        }
    }
    fputc(']', file);
    CPU_FREE(set);
}

/* Writes the file about the rank, which appears complete (rename): rank-<rank>.json, or rank-<rank>-<job>.json if the
 * measured command itself started the launcher of this rank (QUIPU_JOB: number of this launcher). */
static void note_rank(const char *folder, const char *host, long rank, long ranks, const char *program) {
    static const char *const job_name[] = {"QUIPU_JOB", NULL};
    const long job = number_of(job_name, 0);
    char path[4096], temporary[4200];
    if (job > 0)
        snprintf(path, sizeof path, "%s/rank-%ld-%ld.json", folder, rank, job);
    else
        snprintf(path, sizeof path, "%s/rank-%ld.json", folder, rank);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "we");
    if (!file) {
        fprintf(stderr, "quipu-exec: cannot write %s: %s [profile-not-written]\n", temporary, strerror(errno));
        return;
    }
    void (*const at_limit)(int) =
        signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on file sizes then fails instead of ending the process */
    fprintf(file, "{\"rank\":%ld,\"ranks\":%ld,\"job\":%ld,\"pid\":%ld,\"host\":", rank, ranks, job, (long)getpid());
    write_json_string(file, host);
    fputs(",\"affinity\":", file);
    write_affinity(file);
    fputs(",\"program\":", file);
    write_json_string(file, program);
    fputs("}\n", file);
    int failed = fflush(file) != 0;
    failed |= fclose(file) != 0;
    signal(SIGXFSZ, at_limit);
    if (failed || rename(temporary, path) != 0) {
        fprintf(stderr, "quipu-exec: cannot write %s: %s [profile-not-written]\n", path, strerror(errno));
        unlink(temporary);
    }
}

/* Splits a command at spaces, in place. A backslash quotes the next character. Returns the words and a final NULL; NULL
 * if there is no memory. */
static char **split_words(char *text) {
    size_t count = 0;
    char **words = (char **)calloc(strlen(text) / 2 + 2, sizeof *words);
    char *to = text;
    while (words && *text) {
        while (*text == ' ')
            text++;
        if (!*text)
            break;
        words[count++] = to;
        while (*text && *text != ' ') {
            if (*text == '\\' && text[1])
                text++;
            *to++ = *text++;
        }
        if (*text)
            text++;
        *to++ = '\0';
    }
    return words;
}

/* Returns whether the agent of an earlier job of this run still runs: this agent then holds the lock of the log file.
 */
static bool is_locked(int log) { return log >= 0 && flock(log, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

/* Starts the node agent. The agent must not be a child of the program, because the program could wait for all of its
 * children. It also must not hold files of the program open. */
static void start_node_agent(const char *folder, const char *host) {
    const char *command = getenv("QUIPU_NODE_AGENT");
    if (!command || !*command)
        return;
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "quipu-exec: cannot start the node agent: %s [no-node-agent]\n", strerror(errno));
        return;
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
        return;
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    char path[4096];
    snprintf(path, sizeof path, "%s/node-%s.log", folder, host);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (is_locked(log))
        _exit(0);
    int null = open("/dev/null", O_RDONLY);
    int output = log >= 0 ? log : null;
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(127);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    char *text = strdup(command);
    char **words = text ? split_words(text) : NULL;
    unsetenv("QUIPU_DIR"); /* the agent is not measured */
    unsetenv("LD_PRELOAD");
    if (words && words[0])
        execvp(words[0], words);
    fprintf(stderr, "quipu-exec: cannot start the node agent %s: %s [no-node-agent]\n", command, strerror(errno));
    _exit(127);
}

/* Adds a path to the beginning of a variable with a list of paths separated by colons. */
static void put_before(const char *variable, const char *path) {
    const char *old = getenv(variable);
    char *value = NULL;
    if (old && *old) {
        if (asprintf(&value, "%s:%s", path, old) >= 0)
            setenv(variable, value, 1);
        free(value);
    } else {
        setenv(variable, path, 1);
    }
}

/* Returns whether a path can be an entry of LD_PRELOAD. Entries end at these characters, which cannot be quoted. */
static bool is_one_entry(const char *path) { return !strpbrk(path, " :\t\n"); }

/* Creates the symbolic link `path` to a file. Returns whether this user now has a link with this target. */
static bool have_link(const char *file, const char *path) {
    char target[4096];
    struct stat status;
    if (symlink(file, path) == 0)
        return true;
    if (errno != EEXIST || lstat(path, &status) != 0 || !S_ISLNK(status.st_mode) || status.st_uid != geteuid())
        return false;
    const ssize_t length = readlink(path, target, sizeof target);
    return length > 0 && (size_t)length == strlen(file) && memcmp(target, file, (size_t)length) == 0;
}

/* Adds a library to LD_PRELOAD. If its path cannot be an entry, adds a symbolic link to it. */
static void preload(const char *folder, const char *library) {
    if (is_one_entry(library)) {
        put_before("LD_PRELOAD", library);
        return;
    }
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *c = library; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    const char *const places[] = {folder, "/tmp", NULL};
    for (const char *const *place = places; *place; place++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/quipu-%ld-%016llx.so", *place, (long)geteuid(), (unsigned long long)hash);
        if (**place == '/' && is_one_entry(path) && have_link(library, path)) {
            put_before("LD_PRELOAD", path);
            return;
        }
    }
    fprintf(stderr,
            "quipu-exec: error: the path %s has a space or a colon, which LD_PRELOAD cannot name, and there is no "
            "folder for a link to it: set XDG_CACHE_HOME to a folder without them [bad-setting]\n",
            library);
    exit(1);
}

/* Finds the path of a file of Quipu in ../lib/quipu, relative to the folder of this program. Returns false if the path
 * is not known or too long. */
static bool find_part(const char *name, char *path, size_t size) {
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) { /* remove /bin/quipu-exec */
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    return snprintf(path, size, "%s/lib/quipu/%s", self, name) < (int)size;
}

/* Sets the environment so that functions of Python are measured as regions. */
static void measure_python(const char *folder) {
    char path[8300];
    if (!find_part("python", path, sizeof path))
        return;
    put_before("PYTHONPATH", path);
    if (find_part("libquipu_python.so", path, sizeof path))
        preload(folder, path);
}

/* Adds a library of Quipu to LD_PRELOAD. */
static void preload_part(const char *folder, const char *name) {
    char path[8300];
    if (find_part(name, path, sizeof path))
        preload(folder, path);
}

/* Loads the library that measures regions which the program marks with interfaces of other tools (Kokkos, NVTX …). */
static void take_annotations(const char *folder) {
    char path[8300];
    const char *wanted = getenv("QUIPU_ANNOTATIONS");
    if ((wanted && strcmp(wanted, "off") == 0) || !find_part("libquipu_annotations.so", path, sizeof path) ||
        access(path, R_OK) != 0)
        return;
    setenv("KOKKOS_TOOLS_LIBS", path, 0); /* 0: keep the value of the user */
    setenv("NVTX_INJECTION64_PATH", path, 0);
    preload(folder, path);
}

/* Loads the library that counts allocations. PYTHONMALLOC makes Python call malloc for each object. Otherwise Python
 * would allocate small objects in large blocks. */
static void measure_memory(const char *folder) {
    preload_part(folder, "libquipu_memory.so");
    setenv("PYTHONMALLOC", "malloc", 0);
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: quipu-exec PROGRAM [ARGUMENT...]\nStarted by `quipu run` for every rank.\n", stderr);
        return 2;
    }
    const char *measuring = getenv("QUIPU_DIR");
    char *folder = measuring && *measuring ? strdup(measuring) : NULL; /* setenv may invalidate the value */
    if (folder) {
        char host[256] = "unknown";
        gethostname(host, sizeof host - 1);
        const struct variables *names = launcher_variables();
        long rank = number_of(names->rank, 0);
        long ranks = number_of(names->size, 1);
        set_number("QUIPU_RANK", rank);
        set_number("QUIPU_RANKS", ranks);
        set_number("QUIPU_PARENT", getpid());
        note_rank(folder, host, rank, ranks, argv[1]);
        if (number_of(names->local, rank) == 0)
            start_node_agent(folder, host);
        const char *library = getenv("QUIPU_PRELOAD");
        if (library && *library)
            preload(folder, library);
        take_annotations(folder);
        if (is_set("QUIPU_PYTHON"))
            measure_python(folder);
        if (is_set("QUIPU_SAMPLE_FUNCTIONS"))
            preload_part(folder, "libquipu.so"); /* the program may have been built without Quipu */
        if (is_set("QUIPU_MEMORY"))
            measure_memory(folder);
        if (is_set("QUIPU_FILES"))
            preload_part(folder, "libquipu_files.so");
        if (is_set("QUIPU_OFFLOAD"))
            preload_part(folder, "libquipu_offload.so");
#ifdef QUIPU_SANITIZER_LIBRARY
        preload(folder, QUIPU_SANITIZER_LIBRARY); /* this library must be the first entry */
#endif
        free(folder);
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "quipu-exec: cannot run %s: %s [cannot-run]\n", argv[1], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
