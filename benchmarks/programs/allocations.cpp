// SPDX-License-Identifier: Apache-2.0
/* A program that allocates much: words are counted in a tree, sorted as strings, and kept in lists. Argument: words. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <vector>

static std::string word(unsigned long number) {
    std::string text;
    for (number = number * 2654435761u % 1000003; number; number /= 26)
        text += static_cast<char>('a' + number % 26);
    return text + "-and-what-makes-it-longer";
}

static std::map<std::string, long> count(long words) {
    std::map<std::string, long> counts;
    for (long i = 0; i < words; i++)
        counts[word(static_cast<unsigned long>(i % (words / 4 + 1)))]++;
    return counts;
}

static std::vector<std::string> sorted(const std::map<std::string, long> &counts) {
    std::vector<std::string> words;
    for (const auto &[text, times] : counts)
        words.push_back(text + std::to_string(times));
    std::sort(words.begin(), words.end(),
              [](const auto &a, const auto &b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
    return words;
}

static std::list<std::vector<long>> lists(long words) {
    std::list<std::vector<long>> all;
    for (long i = 0; i < words; i++)
        all.emplace_back(static_cast<std::size_t>(1 + i % 50), i);
    return all;
}

int main(int argc, char **argv) {
    const long words = argc > 1 ? std::atol(argv[1]) : 100000;
    const auto counts = count(words);
    const auto texts = sorted(counts);
    const auto all = lists(words);
    std::printf("%zu %zu %zu\n", counts.size(), texts.back().size(), all.size());
    return 0;
}
