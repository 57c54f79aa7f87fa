// SPDX-License-Identifier: Apache-2.0
/* Ends the process if an instrumented file was built for another runtime, before the file can corrupt data. */
#include "interface.h"
#include "tree.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace quipu;

__attribute__((section(QUIPU_MODULES), used)) const quipu_module self = {quipu_interface(), QUIPU_VERSION, "runtime"};

} // namespace

extern "C" {

void quipu_check(const struct quipu_module *module) {
    if (module->interface == self.interface)
        return;
    char file[1024], runtime[1024], version[sizeof module->version + 16] = "another Quipu";
    name_of_file(module, file, sizeof file);
    name_of_file(&self, runtime, sizeof runtime);
    if (*module->version)
        snprintf(version, sizeof version, "Quipu %.*s", static_cast<int>(sizeof module->version), module->version);
    fprintf(stderr,
            "quipu: error: %s was built for interface %08x of %s (%.*s, for one), but the runtime %s has interface "
            "%08x of Quipu %s: build it again, all of its files, with the compiler wrappers of that Quipu "
            "[interface-differs]\n",
            file, module->interface, version, static_cast<int>(sizeof module->source), module->source, runtime,
            self.interface, self.version);
    /* A direct system call, because the _exit of a sanitizer would examine partly loaded libraries. */
    syscall(SYS_exit_group, 1);
}
}
