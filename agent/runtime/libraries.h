/* Which shared libraries the regions of this process are in: the static facts in their files tell more of them. */
#ifndef QUIPU_LIBRARIES_H
#define QUIPU_LIBRARIES_H

namespace quipu {

/* "library:PATH" of the library that holds `address`; null if it is the program, or none, or was asked for before.
 * Under the lock; valid until the next call. */
const char *new_library_of(const void *address);

} // namespace quipu

#endif
