/* How sanitizers look at a runtime that was built with one (docs/design/sanitizers.md); not part of others. */

/* Programs that were built without Quipu get the runtime through LD_PRELOAD: the sanitizer cannot come first. Whether
 * they free their memory is their matter. */
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
    return "verify_asan_link_order=0:detect_leaks=0";
}

/* Programs and the OpenMP library are not built with the sanitizer: it does not see how they synchronize. */
extern "C" __attribute__((visibility("default"))) const char *__tsan_default_options() {
    return "ignore_noninstrumented_modules=1";
}
