/* SPDX-License-Identifier: Apache-2.0 */
//===- response.h - arguments that are in files (@FILE) ---------------------===//
#ifndef QUIPU_RESPONSE_H
#define QUIPU_RESPONSE_H

#include <cstddef>
#include <string>
#include <vector>

namespace quipu {

struct Word {
    std::string text;
    size_t argument; ///< which argument of the command line it is, or is in
};

/// The arguments as the compiler will see them: in place of @FILE what the file has, files in files included. What
/// cannot be read stays as it is, as does a file inside of itself; the compiler has the words for it.
std::vector<Word> expandResponseFiles(const std::vector<std::string> &arguments);

} // namespace quipu

#endif
