/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of Kokkos Tools (Kokkos_Profiling_C_Interface.h). Kokkos loads the library that the environment
 * variable KOKKOS_TOOLS_LIBS names, and calls these functions.
 */
#include "interface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kokkos_Profiling_SpaceHandle: a memory space. Kokkos passes it by value. */
struct space {
    char name[64];
};

/* Returns the demangled name of a kernel; NULL if its name is not mangled. The caller frees it. Kokkos passes the
 * mangled name of the C++ type for kernels without a label. */
static char *readable(const char *name) {
    typedef char *(*demangle)(const char *, char *, size_t *, int *);
    const char *first = name + strspn(name, "_NSZKL");
    if (first == name || *first < '0' || *first > '9')
        return NULL;
    demangle function = (demangle)dlsym(RTLD_DEFAULT, "__cxa_demangle");
    int status = 0;
    return function != NULL ? function(name, NULL, NULL, &status) : NULL;
}

/* Begins a kernel. Returns the number by which Kokkos ends it: the address of the stored name, 0 if nothing is
 * measured.
 */
static uint64_t begin(const char *name) {
    if (name == NULL)
        name = "";
    char *text = readable(name);
    const char *kept = quipu_region_name(text != NULL ? text : name);
    free(text);
    if (kept != NULL)
        quipu_region_begin(kept);
    return (uint64_t)(uintptr_t)kept;
}

static void end(uint64_t kernel) {
    if (kernel != 0) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
        quipu_region_end((const char *)(uintptr_t)kernel);
}

#define QUIPU_KERNEL(kind)                                                                                             \
    QUIPU_PUBLIC void kokkosp_begin_##kind(const char *name, uint32_t device, uint64_t *kernel);                       \
    void kokkosp_begin_##kind(const char *name, uint32_t device, uint64_t *kernel) {                                   \
        (void)device;                                                                                                  \
        *kernel = begin(name);                                                                                         \
    }                                                                                                                  \
    QUIPU_PUBLIC void kokkosp_end_##kind(uint64_t kernel);                                                             \
    void kokkosp_end_##kind(uint64_t kernel) { end(kernel); }
QUIPU_KERNEL(parallel_for)
QUIPU_KERNEL(parallel_reduce)
QUIPU_KERNEL(parallel_scan)
QUIPU_KERNEL(fence)

QUIPU_PUBLIC void kokkosp_init_library(int number, uint64_t version, uint32_t devices, void *device);
void kokkosp_init_library(int number, uint64_t version, uint32_t devices, void *device) {
    (void)number, (void)version, (void)devices, (void)device;
}

QUIPU_PUBLIC void kokkosp_finalize_library(void);
void kokkosp_finalize_library(void) {}

QUIPU_PUBLIC void kokkosp_push_profile_region(const char *name);
void kokkosp_push_profile_region(const char *name) { quipu_open(QUIPU_KOKKOS, NULL, name); }

QUIPU_PUBLIC void kokkosp_pop_profile_region(void);
void kokkosp_pop_profile_region(void) { quipu_close(QUIPU_KOKKOS, NULL); }

QUIPU_PUBLIC void kokkosp_begin_deep_copy(struct space to, const char *to_name, const void *to_data, struct space from,
                                          const char *from_name, const void *from_data, uint64_t bytes);
void kokkosp_begin_deep_copy(struct space to, const char *to_name, const void *to_data, struct space from,
                             const char *from_name, const void *from_data, uint64_t bytes) {
    (void)to_data, (void)from_data, (void)bytes;
    char name[512];
    snprintf(name, sizeof name, "deep_copy %.150s (%.60s) to %.150s (%.60s)", from_name != NULL ? from_name : "",
             from.name, to_name != NULL ? to_name : "", to.name);
    quipu_open(QUIPU_KOKKOS_COPY, NULL, name);
}

QUIPU_PUBLIC void kokkosp_end_deep_copy(void);
void kokkosp_end_deep_copy(void) { quipu_close(QUIPU_KOKKOS_COPY, NULL); }

/* Profile sections become regions. A section that is stopped on another thread than it was started on is not ended. */
enum { MOST_SECTIONS = 1024 };
static const char *section[MOST_SECTIONS];
static uint32_t section_count;

QUIPU_PUBLIC void kokkosp_create_profile_section(const char *name, uint32_t *number);
void kokkosp_create_profile_section(const char *name, uint32_t *number) {
    *number = __atomic_fetch_add(&section_count, 1, __ATOMIC_RELAXED);
    if (*number < MOST_SECTIONS)
        section[*number] = quipu_region_name(name);
}

QUIPU_PUBLIC void kokkosp_start_profile_section(uint32_t number);
void kokkosp_start_profile_section(uint32_t number) {
    if (number < MOST_SECTIONS && section[number] != NULL)
        quipu_open(QUIPU_KOKKOS_SECTION, (const void *)&section[number], section[number]);
}

QUIPU_PUBLIC void kokkosp_stop_profile_section(uint32_t number);
void kokkosp_stop_profile_section(uint32_t number) {
    if (number < MOST_SECTIONS)
        quipu_close(QUIPU_KOKKOS_SECTION, (const void *)&section[number]);
}

QUIPU_PUBLIC void kokkosp_destroy_profile_section(uint32_t number);
void kokkosp_destroy_profile_section(uint32_t number) { (void)number; }
