/* SPDX-License-Identifier: Apache-2.0 */
//===- arguments.h - the command line of a compiler wrapper ----------------===//
#ifndef QUIPU_ARGUMENTS_H
#define QUIPU_ARGUMENTS_H

#include <string>
#include <vector>

namespace quipu {

struct CommandLine {
    std::vector<std::string> arguments; ///< unchanged arguments without the options of the wrapper
    std::string filter;                 ///< --quipu-filter=FILE
    bool naive = false;                 ///< --quipu-naive: the pass inserts one call per block
    std::string inlined;                ///< --quipu-inlined=time|counts|off: how inlined functions are measured
    std::string callGraph;              ///< --quipu-callgraph=on|off: whether object files contain their call graph
    bool all = false;                   ///< --quipu-all: hooks for small functions, too
    bool onlySelected = false;          ///< --quipu-only-selected: no counters in functions without a hook
    bool off = false;                   ///< --quipu-off: call the compiler without pass and runtime
    bool show = false;                  ///< --quipu-show: print the command instead of running it
    bool hasInput = false;              ///< there are inputs to compile or link
    bool compiles = false;              ///< there are source files
    bool links = false;                 ///< the linker runs and produces a program or a shared library
    bool isStatic = false;              ///< -static
    bool emulatedTls = false;    ///< -femulated-tls: thread-local variables of the runtime are only accessible by calls
    bool openMp = false;         ///< -fopenmp
    bool hasDebugOption = false; ///< there is a -g option
    bool hasRemarks = false;     ///< the compiler shall print optimization remarks
};

/// Reads the arguments of a compiler driver (clang or flang, without argv[0]), including those in response files.
CommandLine parseArguments(const std::vector<std::string> &arguments);

} // namespace quipu

#endif
