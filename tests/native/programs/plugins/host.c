/* SPDX-License-Identifier: Apache-2.0 */
// Loads libraries one after the other, each often at the address of the one before it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static long run(const char *path, int n) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    long (*work)(int) = (long (*)(int))dlsym(library, "work");
    long result = work(n);
    dlclose(library);
    return result;
}

int main(int argc, char **argv) {
    for (int round = 1; round <= 3; round++)
        for (int i = 1; i < argc; i++)
            printf("%ld\n", run(argv[i], 10 * round));
    return 0;
}
