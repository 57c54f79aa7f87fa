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
    size_t argument; ///< index of its command line argument: the word itself, or the response file with the word
};

/// Returns the arguments after the expansion of response files: @FILE is replaced by the content of the file, also
/// inside of response files. Unreadable files, and files that contain themselves, stay unchanged: the compiler then
/// reports the error.
std::vector<Word> expandResponseFiles(const std::vector<std::string> &arguments);

} // namespace quipu

#endif
