/* SPDX-License-Identifier: Apache-2.0 */
//===- arguments.h - what a compiler command line asks for -----------------===//
#ifndef QUIPU_ARGUMENTS_H
#define QUIPU_ARGUMENTS_H

#include <string>
#include <vector>

namespace quipu {

struct CommandLine {
    std::vector<std::string> arguments; ///< as they were given, without our own options
    std::string filter;                 ///< --quipu-filter=FILE
    bool naive = false;                 ///< --quipu-naive: the pass counts by one call per block
    std::string inlined;                ///< --quipu-inlined=time|counts|off: what is kept of inlined functions
    std::string callGraph;              ///< --quipu-callgraph=on|off: whether files describe the calls in them
    bool all = false;                   ///< --quipu-all: hooks for small functions, too
    bool onlySelected = false;          ///< --quipu-only-selected: functions without a hook stay as they are
    bool off = false;                   ///< --quipu-off: the compiler alone, without pass and runtime
    bool show = false;                  ///< --quipu-show: print the command instead of running it
    bool hasInput = false;              ///< there is something to compile or link
    bool compiles = false;              ///< source files are among the inputs
    bool links = false;                 ///< the linker will run and makes a program or a shared library
    bool isStatic = false;              ///< -static
    bool emulatedTls = false;           ///< -femulated-tls: no variable of the runtime can be reached but by a call
    bool openMp = false;                ///< -fopenmp
    bool hasDebugOption = false;        ///< some -g option is given
    bool hasRemarks = false;            ///< the compiler is to say which line it optimizes in which way
};

/// Reads the arguments of a call of a compiler driver (clang or flang, without argv[0]), and those in response files.
CommandLine parseArguments(const std::vector<std::string> &arguments);

} // namespace quipu

#endif
