/* SPDX-License-Identifier: Apache-2.0 */
/* The structs and enums of profile.def. */
#ifndef QUIPU_PROFILE_FORMAT_H
#define QUIPU_PROFILE_FORMAT_H

#include <stdint.h>

#define QUIPU_STRUCT(name, bytes) struct quipu_##name {
#define QUIPU_FIELD(type, name) type name;
#define QUIPU_ARRAY(type, name, count) type name[count];
#define QUIPU_ENUM(name) enum quipu_##name {
#define QUIPU_VALUE(name, number) QUIPU_##name = (number),
#define QUIPU_END                                                                                                      \
    }                                                                                                                  \
    ;
#include "profile.def"

#endif
