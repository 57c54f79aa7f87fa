/* SPDX-License-Identifier: Apache-2.0 */
/* What environment variables said when the process started. */
#ifndef QUIPU_SETTINGS_H
#define QUIPU_SETTINGS_H

namespace quipu {

/* Keeps copies of the runtime's variables. False if there is no memory. */
bool keep_settings();

/* Returns the value that a variable of settings.cpp had then; null if it was not set. */
const char *setting(const char *name);

} // namespace quipu

#endif
