/* The mapped profile file of this process: chunks of nodes, text records, header. */
#ifndef QUIPU_PROFILE_H
#define QUIPU_PROFILE_H

#include "profile_format.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu {

/* Everything here is called rarely and under the lock of the runtime (lock.h), except the readers of `header`. */
class Profile {
  public:
    /* Creates profile-<host>-<pid>.quipu in `folder`. Returns false, with a message on stderr, if that fails. */
    bool create(const char *folder, uint32_t node_size, uint32_t metric_count, const char *metric_table);
    /* A fresh, zeroed chunk of this type, or null when the disk is full (noted in the header). */
    quipu_profile_chunk *add_chunk(uint32_t type, uint32_t location);
    /* Appends a text record made of `count` parts joined by \x1f. Returns false when there is no room. */
    bool add_text(uint32_t type, uint64_t id, const char *const *parts, size_t count);
    /* Notes that events were lost because the file could not grow. */
    void note_lost();

    quipu_profile_header *header = nullptr; /* null: nothing is measured */

  private:
    bool grow(void **mapped);
    void note_error(const char *what, int code);

    int fd = -1;
    uint64_t size = 0;
    quipu_profile_chunk *text = nullptr;
};

constexpr uint32_t chunk_size = 65536;

} // namespace quipu

#endif
