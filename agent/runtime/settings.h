/* SPDX-License-Identifier: Apache-2.0 */
/* The values of environment variables at the start of the process. */
#ifndef QUIPU_SETTINGS_H
#define QUIPU_SETTINGS_H

namespace quipu {

/* Copies the variables of the runtime. Returns false if there is no memory. */
bool keep_settings();

/* Returns the value of a variable of settings.cpp at the start; null if it was not set. */
const char *setting(const char *name);

} // namespace quipu

#endif
