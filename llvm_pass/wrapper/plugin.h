/* SPDX-License-Identifier: Apache-2.0 */
//===- plugin.h - the build of the pass for a compiler ---------------------===//
#ifndef QUIPU_PLUGIN_H
#define QUIPU_PLUGIN_H

#include <string>

namespace quipu {

/// Returns the file that execvp would run, without resolving links; empty if there is none.
std::string findProgram(const std::string &name);

/// Returns the plugin in the folder `library` that `compiler` can load: QuipuPass-N.so for a compiler of LLVM N. Empty
/// if there is none; `problem` then has the reason and advice, or is also empty if the compiler does not exist.
std::string pluginFor(const std::string &compiler, const std::string &library, std::string &problem);

/// Returns a tool (llvm-ar) of the compiler's LLVM: next to the compiler, or else in PATH with the version in its name.
std::string toolOf(const std::string &compiler, const std::string &name);

/// Returns flang's folder with omp_lib.h; empty if there is none. Without an option, flang searches its folder of
/// modules, but not this folder.
std::string openMpIncludesOf(const std::string &flang);

} // namespace quipu

#endif
