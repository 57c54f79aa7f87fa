/* SPDX-License-Identifier: Apache-2.0 */
/* quipu-exec PROGRAM ARGS…: mpirun starts it instead of the program, once per rank.
 *
 * It reads its rank from the variables of the launcher, writes a file about the rank to $QUIPU_DIR, starts the node
 * agent on the first rank of a node, adds the MPI library to LD_PRELOAD, and executes the program in its own place. It
 * is written in C, because starting Python on every rank would take too long.
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

/* The variables with the rank of a process, by launcher; the first variable that is set is used. The environment may
 * also contain variables of other launchers or a batch system, so only the variables of the launcher that Quipu started
 * are used. */
struct variables {
    const char *family; /* value of QUIPU_LAUNCHER */
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

/* Writes a JSON string; bytes that are not UTF-8 become surrogates, as in Python's file names (PEP 383). */
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

/* Writes the CPUs that this rank may use as a JSON list. */
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

/* Writes rank-<rank>.json in one step; rank-<rank>-<job>.json for ranks of a launcher that the measured command starts.
 */
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
        signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit on file sizes then fails without a signal */
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

/* Splits a command at spaces; a backslash takes the next character as it is. */
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

/* Returns whether the agent of an earlier job of this run still runs: it holds the lock of its log file. */
static bool is_locked(int log) { return log >= 0 && flock(log, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

/* Starts the agent. It is not a child of the program, which could wait for it, and holds no file of the program open.
 */
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

/* Returns whether a path can be an entry of LD_PRELOAD: entries end at these characters, and quoting is impossible. */
static bool is_one_entry(const char *path) { return !strpbrk(path, " :\t\n"); }

/* Creates a symbolic link to this file if it is missing. */
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

/* Adds a library to LD_PRELOAD; by a link if its own path cannot be an entry. */
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

/* Finds the path of a part of Quipu, which is in ../lib/quipu relative to this program. */
static bool find_part(const char *name, char *path, size_t size) {
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    for (int i = 0; i < 2; i++) { /* the prefix of bin/quipu-exec */
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    return snprintf(path, size, "%s/lib/quipu/%s", self, name) < (int)size;
}

/* Prepares the environment so that Python functions are regions. */
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

/* Loads the libraries that measure regions marked with interfaces of other tools. */
static void take_annotations(const char *folder) {
    char path[8300];
    const char *wanted = getenv("QUIPU_ANNOTATIONS");
    if ((wanted && strcmp(wanted, "off") == 0) || !find_part("libquipu_annotations.so", path, sizeof path) ||
        access(path, R_OK) != 0)
        return;
    setenv("KOKKOS_TOOLS_LIBS", path, 0); /* 0: keep a tool that the user chose */
    setenv("NVTX_INJECTION64_PATH", path, 0);
    preload(folder, path);
}

/* Measures the functions of malloc. PYTHONMALLOC makes the interpreter call malloc for each small object, too, instead
 * of using its own allocator. */
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
    char *folder = measuring && *measuring ? strdup(measuring) : NULL; /* setenv may move the environment */
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
            preload_part(folder, "libquipu.so"); /* also for programs that were not built with Quipu */
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
