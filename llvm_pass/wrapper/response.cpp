// SPDX-License-Identifier: Apache-2.0
#include "response.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <sys/stat.h>

namespace quipu {
namespace {

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Splits a response file into words like clang and flang: single and double quotes can contain spaces, a backslash
/// escapes the next character (also inside of quotes), and empty quotes are not a word.
std::vector<std::string> wordsOf(std::string_view text) {
    if (text.substr(0, 3) == "\xef\xbb\xbf") // byte order mark
        text.remove_prefix(3);
    std::vector<std::string> words;
    std::string word;
    char quote = 0;
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
        } else if (quote) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (!isSpace(c)) {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::move(word));
            word.clear();
        }
    }
    if (!word.empty())
        words.push_back(std::move(word));
    return words;
}

using Inode = std::pair<dev_t, ino_t>;

/// Adds the arguments of `text`, which may be @FILE. within: the response files that contain it.
void expand(const std::string &text, size_t argument, std::vector<Inode> &within, std::vector<Word> &words) {
    const std::string path = text.size() > 1 && text[0] == '@' ? text.substr(1) : "";
    struct stat file;
    if (path.empty() || stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) {
        words.push_back({text, argument});
        return;
    }
    const Inode inode(file.st_dev, file.st_ino);
    std::ifstream stream(path, std::ios::binary);
    if (!stream || std::find(within.begin(), within.end(), inode) != within.end()) {
        words.push_back({text, argument});
        return;
    }
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    within.push_back(inode);
    for (const std::string &word : wordsOf(content))
        expand(word, argument, within, words);
    within.pop_back();
}

} // namespace

std::vector<Word> expandResponseFiles(const std::vector<std::string> &arguments) {
    std::vector<Word> words;
    std::vector<Inode> within;
    for (size_t i = 0; i < arguments.size(); i++)
        expand(arguments[i], i, within, words);
    return words;
}

} // namespace quipu
