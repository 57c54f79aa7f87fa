/* SPDX-License-Identifier: Apache-2.0 */
//===- plugin.h - which build of the pass fits a compiler ------------------===//
#ifndef QUIPU_PLUGIN_H
#define QUIPU_PLUGIN_H

#include <string>

namespace quipu {

/// The file that execvp would run, links as they are; empty if there is none.
std::string findProgram(const std::string &name);

/// The plugin in `library` that `compiler` can load: QuipuPass-N.so for a compiler of LLVM N. Empty if there is none;
/// then `problem` says why and what to do, or is empty, too, if there is no such compiler.
std::string pluginFor(const std::string &compiler, const std::string &library, std::string &problem);

/// Returns a tool (llvm-ar) of the compiler's LLVM: next to the compiler, or else in PATH with the version in its name.
std::string toolOf(const std::string &compiler, const std::string &name);

/// Where flang has omp_lib.h, which it does not look for in its own folder as it does for modules; empty if nowhere.
std::string openMpIncludesOf(const std::string &flang);

} // namespace quipu

#endif
