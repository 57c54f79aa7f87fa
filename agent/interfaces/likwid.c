/* SPDX-License-Identifier: Apache-2.0 */
/* The marker interface of LIKWID for C (likwid-marker.h). The interface for Fortran calls the same functions. */
#include "interface.h"

#include <string.h>

typedef void (*plain)(void);
typedef int (*of_region)(const char *);

#define QUIPU_PASS_ON(name)                                                                                            \
    QUIPU_PUBLIC void name(void);                                                                                      \
    void name(void) {                                                                                                  \
        plain next = QUIPU_NEXT(plain, #name);                                                                         \
        if (next != NULL)                                                                                              \
            next();                                                                                                    \
    }
QUIPU_PASS_ON(likwid_markerInit)
QUIPU_PASS_ON(likwid_markerThreadInit)
QUIPU_PASS_ON(likwid_markerNextGroup)
QUIPU_PASS_ON(likwid_markerClose)

QUIPU_PUBLIC int likwid_markerRegisterRegion(const char *region);
int likwid_markerRegisterRegion(const char *region) {
    of_region next = QUIPU_NEXT(of_region, "likwid_markerRegisterRegion");
    return next != NULL ? next(region) : 0;
}

QUIPU_PUBLIC int likwid_markerResetRegion(const char *region);
int likwid_markerResetRegion(const char *region) {
    of_region next = QUIPU_NEXT(of_region, "likwid_markerResetRegion");
    return next != NULL ? next(region) : 0;
}

QUIPU_PUBLIC int likwid_markerStartRegion(const char *region);
int likwid_markerStartRegion(const char *region) {
    quipu_region_begin(region);
    of_region next = QUIPU_NEXT(of_region, "likwid_markerStartRegion");
    return next != NULL ? next(region) : 0;
}

QUIPU_PUBLIC int likwid_markerStopRegion(const char *region);
int likwid_markerStopRegion(const char *region) {
    of_region next = QUIPU_NEXT(of_region, "likwid_markerStopRegion");
    const int result = next != NULL ? next(region) : 0;
    quipu_region_end(region);
    return result;
}

QUIPU_PUBLIC void likwid_markerGetRegion(const char *region, int *events, double *values, double *time, int *count);
void likwid_markerGetRegion(const char *region, int *events, double *values, double *time, int *count) {
    typedef void (*function)(const char *, int *, double *, double *, int *);
    function next = QUIPU_NEXT(function, "likwid_markerGetRegion");
    if (next != NULL) {
        next(region, events, values, time, count);
        return;
    }
    if (events != NULL)
        *events = 0;
    if (time != NULL)
        *time = 0;
    if (count != NULL)
        *count = 0;
}
