/* Which files the code of this process is from. */
#ifndef QUIPU_LIBRARIES_H
#define QUIPU_LIBRARIES_H

#include <stddef.h>

namespace quipu {

/* "library:PATH" of the library that holds `address`, whose static facts tell more of the regions there; null if it is
 * the program, or none, or was asked for before. Under the lock; valid until the next call. */
const char *new_library_of(const void *address);

/* The name of the library or program that holds `address`, for a person. */
void name_of_file(const void *address, char *name, size_t size);

} // namespace quipu

#endif
