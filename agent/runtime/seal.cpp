/* The end of a profile: checksums, after which nothing is written to the file any more. */
#include "profile.h"

#include <sys/mman.h>

namespace quipu {
namespace {

/* CRC-32 as in IEEE 802.3 (reflected polynomial 0xedb88320): what zlib's crc32() gives. */
class Checksum {
  public:
    Checksum() {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t remainder = byte;
            for (int bit = 0; bit < 8; bit++)
                remainder = remainder >> 1 ^ (remainder & 1 ? 0xedb88320u : 0);
            table[byte] = remainder;
        }
    }
    /* Never 0, which means that there is none. */
    uint32_t of(const void *data, size_t bytes) const {
        uint32_t crc = ~0u;
        for (size_t i = 0; i < bytes; i++)
            crc = crc >> 8 ^ table[(crc ^ static_cast<const unsigned char *>(data)[i]) & 255];
        return ~crc ? ~crc : 1;
    }

  private:
    uint32_t table[256];
};

void *share(int fd, uint64_t offset, size_t bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    return mapped == MAP_FAILED ? nullptr : mapped;
}

} // namespace

void Profile::seal() {
    sealed = true;
    /* Threads that go on counting must not spoil the checksums: where that cannot be, there are none. */
    for (size_t i = 0; i < count; i++)
        if (mmap(mappings[i].address, mappings[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                 static_cast<off_t>(mappings[i].offset)) == MAP_FAILED)
            return;
    const Checksum checksum;
    uint32_t chunks = 0;
    for (uint64_t offset = sizeof(quipu_profile_header); offset < size; offset += chunk_size, chunks++) {
        auto *chunk = static_cast<quipu_profile_chunk *>(share(fd, offset, chunk_size));
        if (!chunk)
            return; /* without the checksum of the header the others do not count */
        chunk->crc = 0;
        chunk->crc = checksum.of(chunk, sizeof(quipu_profile_chunk) + chunk->used);
        munmap(chunk, chunk_size);
    }
    if (auto *whole = static_cast<quipu_profile_header *>(share(fd, 0, sizeof(quipu_profile_header)))) {
        whole->chunks = chunks;
        whole->crc = checksum.of(whole, sizeof(quipu_profile_header));
        munmap(whole, sizeof(quipu_profile_header));
    }
}

} // namespace quipu
