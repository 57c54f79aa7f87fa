/* SPDX-License-Identifier: Apache-2.0 */
/* quipu/region.h: mark regions, phases and parameters in the source of a program, in C and C++.
 *
 *   QUIPU_REGION_BEGIN("assemble");   a region of the call tree, between two points of the source
 *   QUIPU_REGION_END("assemble");
 *   QUIPU_PHASE_BEGIN("step", i);     a region whose iterations are also recorded separately
 *   QUIPU_PHASE_END("step");          (quipu show --iterations step)
 *   QUIPU_PARAMETER("n", n);          a parameter of the run; quipu run then needs no --param n=…
 *
 * In C++, an object ends its region or phase at the end of its scope:
 *   quipu::Region region("assemble");
 *   quipu::Phase step("step", i);
 *
 * While Quipu does not measure the process, each macro costs only a branch. No library is necessary. The runtime copies
 * the names. A region must end on the thread that began it. If QUIPU_NO_REGIONS is defined, the macros are empty. */
#ifndef QUIPU_REGION_H
#define QUIPU_REGION_H

#ifdef QUIPU_REGION_RUNTIME /* the runtime or the library that defines these functions */
#define QUIPU_REGION_LINKAGE __attribute__((visibility("default")))
#else
#define QUIPU_REGION_LINKAGE __attribute__((weak, visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Begin a region of this thread. */
extern void quipu_region_begin(const char *name) QUIPU_REGION_LINKAGE;
/* End the innermost open region of this thread with this name, and all regions that began inside of it. */
extern void quipu_region_end(const char *name) QUIPU_REGION_LINKAGE;
/* Begin and end a region that is one iteration, for example a time step. */
extern void quipu_phase_begin(const char *name, long long iteration) QUIPU_REGION_LINKAGE;
extern void quipu_phase_end(const char *name) QUIPU_REGION_LINKAGE;
/* Return a copy of a name that exists until the end of the process; NULL if nothing is measured. */
extern const char *quipu_region_name(const char *name) QUIPU_REGION_LINKAGE;
/* Record a parameter of this run. All processes of the run must give the same value. */
extern void quipu_parameter(const char *name, double value) QUIPU_REGION_LINKAGE;

#ifndef QUIPU_REGION_RUNTIME
/* Not 0 while this process is measured; its address is null while there is no runtime. */
extern unsigned quipu_measuring QUIPU_REGION_LINKAGE;
#endif

#ifdef __cplusplus
}
#endif

#ifdef QUIPU_NO_REGIONS
#define QUIPU_REGION_CALL(call, arguments) ((void)sizeof(call arguments, 0))
#else
#define QUIPU_IS_MEASURED(call) __builtin_expect(&quipu_measuring &&quipu_measuring && (call), 0)
#define QUIPU_REGION_CALL(call, arguments) (QUIPU_IS_MEASURED(call) ? call arguments : (void)0)
#endif

#define QUIPU_REGION_BEGIN(name) QUIPU_REGION_CALL(quipu_region_begin, (name))
#define QUIPU_REGION_END(name) QUIPU_REGION_CALL(quipu_region_end, (name))
#define QUIPU_PHASE_BEGIN(name, iteration) QUIPU_REGION_CALL(quipu_phase_begin, (name, (long long)(iteration)))
#define QUIPU_PHASE_END(name) QUIPU_REGION_CALL(quipu_phase_end, (name))
#define QUIPU_PARAMETER(name, value) QUIPU_REGION_CALL(quipu_parameter, (name, (double)(value)))

#if defined(__cplusplus) && !defined(QUIPU_REGION_RUNTIME)
namespace quipu {

inline const char *kept_name(const char *name) {
#ifdef QUIPU_NO_REGIONS
    return name ? nullptr : name;
#else
    return QUIPU_IS_MEASURED(quipu_region_name) ? quipu_region_name(name) : nullptr;
#endif
}

/* A region from here to the end of the scope. */
class Region {
  public:
    explicit Region(const char *region) : name(kept_name(region)) {
        if (name)
            QUIPU_REGION_BEGIN(name);
    }
    ~Region() {
        if (name)
            QUIPU_REGION_END(name);
    }
    Region(const Region &) = delete;
    Region &operator=(const Region &) = delete;

  private:
    const char *name;
};

class Phase {
  public:
    Phase(const char *phase, long long iteration) : name(kept_name(phase)) {
        if (name)
            QUIPU_PHASE_BEGIN(name, iteration);
    }
    ~Phase() {
        if (name)
            QUIPU_PHASE_END(name);
    }
    Phase(const Phase &) = delete;
    Phase &operator=(const Phase &) = delete;

  private:
    const char *name;
};

} // namespace quipu
#endif

#endif
