/* The file that the runtime keeps mapped while a process runs: profile-<host>-<pid>.quipu in $QUIPU_DIR.
 *
 * A header, then chunks of `chunk_size` bytes. Numbers are little endian. Everything is written in place, so
 * that what is in the file is the state at the moment when the process ended, however it ended.
 * A chunk belongs to one location (thread) or, for text, to the process.
 *   nodes: struct node records, one after the other; `used` of the chunk says how many bytes are filled
 *   text:  struct text records; each is followed by `length` bytes of UTF-8 (no NUL) and padded to 8
 *          region:    name \x1f display \x1f file \x1f line \x1f kind \x1f quiet   (id = the number that nodes use)
 *          attribute: key \x1f value                                      (later ones replace earlier ones)
 *                     id 0: of the process; else of the location number id - 1, which is then a rank by itself
 *          location:  name of the thread                                  (id = the location number)
 *          rest:      region ids from the root \x1f values                (id = the location number)
 *                     what a call path got after a reduction over MPI (the largest, of max metrics); decimal numbers
 *                     with spaces between them, one value per metric, then visits of quiet regions and how many
 *                     counters were added to, as readers find them in the nodes of a profile. Attributes of a profile
 *                     that was reduced: reduction (its id) and, at the end of the process, rests (how many of these
 *                     records there are).
 *   counters: struct counters records, each followed by `count` uint64 counters of one node
 *   weights:  struct weights records, each followed by count x metric_count int64, row by row
 *   threads:  struct thread records, one per location, the latest state of that thread
 *
 * Effort of a node, for each metric m that the weights of its region cover:
 *   metrics[m] + visits * weights[0][m] + sum over i of counters[i] * weights[i + 1][m]
 * in wrapping 64-bit arithmetic: row 0 of a region's weights belongs to the visits of the node, and single weights may
 * be negative. A region is quiet if it has no hook of its own: it is never active, has no time, and its effort belongs
 * to its parent node (its visits do not).
 *
 * When a process ends the file is sealed: nothing is written to it any more, and header and chunks carry checksums.
 * They are CRC-32 as in IEEE 802.3 and zlib, with the field itself as 0; a checksum that comes out as 0 is stored as 1.
 */
#ifndef QUIPU_PROFILE_FORMAT_H
#define QUIPU_PROFILE_FORMAT_H

#include <stdint.h>

#define QUIPU_PROFILE_MAGIC "QUIPUPRF"
enum { QUIPU_PROFILE_VERSION = 2 };
enum quipu_profile_state { QUIPU_RUNNING = 0, QUIPU_FLUSHED = 1, QUIPU_ENDED = 2 };
enum quipu_profile_clock { QUIPU_CLOCK_NONE = 0, QUIPU_CLOCK_NANOSECONDS = 1, QUIPU_CLOCK_TSC = 2 };
enum quipu_chunk_type {
    QUIPU_CHUNK_NODES = 1,
    QUIPU_CHUNK_TEXT = 2,
    QUIPU_CHUNK_COUNTERS = 3,
    QUIPU_CHUNK_WEIGHTS = 4,
    QUIPU_CHUNK_THREADS = 5
};
enum quipu_text_type { QUIPU_TEXT_REGION = 1, QUIPU_TEXT_ATTRIBUTE = 2, QUIPU_TEXT_LOCATION = 3, QUIPU_TEXT_REST = 4 };

struct quipu_profile_header { /* 4096 bytes */
    char magic[8];
    uint32_t version;
    uint32_t header_size;
    uint32_t chunk_size;
    uint32_t node_size;
    uint32_t metric_count;
    uint32_t state; /* enum quipu_profile_state */
    uint32_t pid;
    uint32_t clock;       /* enum quipu_profile_clock: the unit of the time metric */
    uint64_t start_ticks; /* a pair of clock readings at the start and one at the latest flush: */
    uint64_t start_ns;    /* seconds per tick = (flush_ns - start_ns) / (flush_ticks - start_ticks) * 1e-9 */
    uint64_t flush_ticks;
    uint64_t flush_ns;
    uint64_t start_epoch_ns;       /* CLOCK_REALTIME at the start */
    uint64_t lost;                 /* events that found no room in the file */
    char error[128];               /* what went wrong, for a person; empty if nothing */
    char metrics[3840 - 128 - 88]; /* "name\tunit\tkind\tover_locations\tdescription\n" per metric, NUL at the end */
    uint32_t crc;                  /* 0 until the file is sealed: checksum of this header */
    uint32_t chunks;               /* of a sealed file: how many it has */
    char reserved[248];
};

struct quipu_profile_chunk { /* 64 bytes */
    uint32_t type;           /* enum quipu_chunk_type; 0: never used */
    uint32_t location;       /* thread number in this process, from 0 */
    uint32_t used;           /* bytes filled after this chunk header */
    uint32_t crc;            /* of a sealed file: checksum of this chunk header and the bytes filled */
    uint64_t address;        /* where the chunk was mapped: pointers in the file are meant so */
    uint32_t unused[10];
};

struct quipu_profile_node { /* the part of a node that readers use; metric_count counters follow */
    uint32_t id;            /* from 1, counts over the whole process */
    uint32_t parent;        /* 0: a root */
    uint64_t region;        /* id of a region record; 0: the root of a location */
    uint64_t hidden[6];     /* pointers of the running process; of no meaning in a file */
    /* uint64_t metrics[metric_count]: exclusive values, except max metrics */
};

struct quipu_profile_counters {
    uint32_t node; /* id of the node */
    uint32_t count;
};

struct quipu_profile_weights {
    uint64_t region;
    uint32_t first;  /* row of the first; a region's rows may be spread over several records */
    uint32_t count;  /* rows */
    uint32_t metric; /* index of the metric of the first column */
    uint32_t metric_count;
};

struct quipu_profile_thread {
    uint32_t location;
    uint32_t in_use; /* 0: no thread has this location now */
    uint64_t here;   /* address of the active node; see `address` of the chunks */
    uint64_t last;   /* clock at the latest event: time since then is not in any node */
    uint64_t hidden[5];
};

struct quipu_profile_text {
    uint32_t type; /* enum quipu_text_type */
    uint32_t length;
    uint64_t id;
};

#endif
