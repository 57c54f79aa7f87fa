// SPDX-License-Identifier: Apache-2.0
// Puts n random keys into a map, a hash table, an open hash table and a sorted array, and looks up as many.
#include "random.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <vector>

namespace {

using Keys = std::vector<uint64_t>;

size_t find(const Keys &Sorted, uint64_t Key) {
    size_t First = 0;
    size_t End = Sorted.size();
    while (First < End) {
        const size_t Middle = First + (End - First) / 2;
        if (Sorted[Middle] == Key)
            return Middle;
        if (Sorted[Middle] < Key)
            First = Middle + 1;
        else
            End = Middle;
    }
    return First;
}

size_t inArray(Keys Sorted, const Keys &Wanted) {
    std::sort(Sorted.begin(), Sorted.end());
    size_t Sum = 0;
    for (const uint64_t Key : Wanted)
        Sum += find(Sorted, Key);
    return Sum;
}

size_t inTree(const Keys &Known, const Keys &Wanted) {
    std::map<uint64_t, size_t> Tree;
    for (size_t I = 0; I < Known.size(); I++)
        Tree[Known[I]] = I;
    size_t Sum = 0;
    for (const uint64_t Key : Wanted)
        Sum += Tree.count(Key);
    return Sum;
}

size_t inHash(const Keys &Known, const Keys &Wanted) {
    std::unordered_map<uint64_t, size_t> Hash;
    for (size_t I = 0; I < Known.size(); I++)
        Hash[Known[I]] = I;
    size_t Sum = 0;
    for (const uint64_t Key : Wanted)
        Sum += Hash.count(Key);
    return Sum;
}

/** Linear probing; the load is 2/3 whatever n is. */
class OpenHash {
  public:
    explicit OpenHash(size_t Number) : Places(Number + Number / 2 + 1) {}
    void insert(uint64_t Key) {
        size_t At = place(Key);
        while (Places[At] && Places[At] != Key)
            At = next(At);
        Places[At] = Key;
    }
    bool contains(uint64_t Key) const {
        size_t At = place(Key);
        while (Places[At] && Places[At] != Key)
            At = next(At);
        return Places[At] == Key;
    }

  private:
    size_t place(uint64_t Key) const { return (Key * 0x9E3779B97F4A7C15u >> 16) % Places.size(); }
    size_t next(size_t At) const { return At + 1 < Places.size() ? At + 1 : 0; }
    Keys Places;
};

size_t inOpenHash(const Keys &Known, const Keys &Wanted) {
    OpenHash Hash(Known.size());
    for (const uint64_t Key : Known)
        Hash.insert(Key);
    size_t Sum = 0;
    for (const uint64_t Key : Wanted)
        Sum += Hash.contains(Key);
    return Sum;
}

} // namespace

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
    Keys Known(N);
    Keys Wanted(N);
    for (uint64_t &Key : Known)
        Key = Next() | 1;
    for (uint64_t &Key : Wanted)
        Key = Next() % 2 ? Known[Next() % N] : Next() | 1;
    std::printf("%zu\n",
                inArray(Known, Wanted) + inTree(Known, Wanted) + inHash(Known, Wanted) + inOpenHash(Known, Wanted));
}
