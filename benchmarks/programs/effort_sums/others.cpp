// SPDX-License-Identifier: Apache-2.0
// Sorts, searches, containers and iterations that no model was made for: what is held out of effort_sums.
#include "random.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Keys = std::vector<double>;

Keys draw(size_t N, Random &Next) {
    Keys X(N);
    for (double &Key : X)
        Key = Next.unit();
    return X;
}

void binaryInsertion(Keys &X) {
    for (size_t I = 1; I < X.size(); I++) {
        const double Key = X[I];
        size_t First = 0;
        for (size_t End = I; First < End;) {
            const size_t Middle = (First + End) / 2;
            if (X[Middle] <= Key)
                First = Middle + 1;
            else
                End = Middle;
        }
        for (size_t J = I; J > First; J--)
            X[J] = X[J - 1];
        X[First] = Key;
    }
}

/** Quicksort of three parts with the middle of three as pivot; insertion below 12. */
void threeWay(Keys &X, size_t First, size_t End) {
    while (End - First > 12) {
        const double A = X[First], B = X[First + (End - First) / 2], C = X[End - 1];
        const double Pivot = std::max(std::min(A, B), std::min(std::max(A, B), C));
        size_t Less = First, More = End;
        for (size_t I = First; I < More;)
            if (X[I] < Pivot)
                std::swap(X[I++], X[Less++]);
            else if (X[I] > Pivot)
                std::swap(X[I], X[--More]);
            else
                I++;
        threeWay(X, First, Less);
        First = More;
    }
    for (size_t I = First + 1; I < End; I++)
        for (size_t J = I; J > First && X[J - 1] > X[J]; J--)
            std::swap(X[J - 1], X[J]);
}

void naturalMerges(Keys &X) {
    Keys Space(X.size());
    for (bool Sorted = false; !Sorted;) {
        Sorted = true;
        for (size_t First = 0; First < X.size();) {
            size_t Middle = First + 1;
            while (Middle < X.size() && X[Middle - 1] <= X[Middle])
                Middle++;
            if (Middle == X.size())
                break;
            size_t End = Middle + 1;
            while (End < X.size() && X[End - 1] <= X[End])
                End++;
            size_t Left = First, Right = Middle, To = First;
            while (Left < Middle && Right < End)
                Space[To++] = X[Left] <= X[Right] ? X[Left++] : X[Right++];
            while (Left < Middle)
                Space[To++] = X[Left++];
            while (Right < End)
                Space[To++] = X[Right++];
            std::copy(Space.begin() + First, Space.begin() + End, X.begin() + First);
            Sorted = Sorted && First == 0 && End == X.size();
            First = End;
        }
    }
}

double sorts(size_t N, Random &Next) {
    double Sum = 0;
    for (int Array = 0; Array < 16; Array++) {
        const Keys X = draw(N, Next);
        Keys A = X, B = X, C = X, D = X;
        binaryInsertion(A);
        threeWay(B, 0, N);
        naturalMerges(C);
        std::stable_sort(D.begin(), D.end());
        Sum += A[N / 3] + B[N / 4] + C[N / 5] + D[N / 6];
    }
    return Sum;
}

/** By interpolation, in a sorted array of uniform keys. */
size_t interpolation(const Keys &X, double Key) {
    size_t Low = 0, High = X.size() - 1;
    while (Low < High && X[Low] < Key && Key <= X[High]) {
        const double Part = (Key - X[Low]) / (X[High] - X[Low]);
        const size_t At = Low + static_cast<size_t>(Part * static_cast<double>(High - Low));
        if (X[At] < Key)
            Low = At + 1;
        else if (At == High)
            High--;
        else
            High = At;
    }
    return Low;
}

/** Doubles the step from the beginning, then halves it. */
size_t galloping(const Keys &X, double Key) {
    size_t Step = 1;
    while (Step < X.size() && X[Step] < Key)
        Step *= 2;
    size_t First = Step / 2;
    for (size_t End = std::min(Step, X.size()); First < End;) {
        const size_t Middle = (First + End) / 2;
        if (X[Middle] < Key)
            First = Middle + 1;
        else
            End = Middle;
    }
    return First;
}

/** The k-th smallest. */
double select(Keys X, size_t K) {
    size_t First = 0, End = X.size();
    while (End - First > 1) {
        const double Pivot = X[First + (End - 1 - First) / 2];
        size_t Low = First, High = End - 1;
        for (;; Low++, High--) {
            while (X[Low] < Pivot)
                Low++;
            while (X[High] > Pivot)
                High--;
            if (Low >= High)
                break;
            std::swap(X[Low], X[High]);
        }
        if (K <= High)
            End = High + 1;
        else
            First = High + 1;
    }
    return X[First];
}

double searches(size_t N, Random &Next) {
    Keys X = draw(N, Next);
    double Sum = 0;
    for (int I = 0; I < 400; I++)
        Sum += select(X, static_cast<size_t>(Next.unit() * static_cast<double>(N)));
    std::sort(X.begin(), X.end());
    for (size_t I = 0; I < N; I++)
        Sum += static_cast<double>(interpolation(X, Next.unit()) + galloping(X, Next.unit()));
    return Sum;
}

struct Node {
    uint64_t Key, Priority;
    Node *Child[2];
};

void rotate(Node *&At, int Side) {
    Node *Up = At->Child[Side];
    At->Child[Side] = Up->Child[!Side];
    Up->Child[!Side] = At;
    At = Up;
}

/** A treap. */
void insertInto(Node *&At, Node *New) {
    if (!At) {
        At = New;
        return;
    }
    const int Side = New->Key > At->Key;
    insertInto(At->Child[Side], New);
    if (At->Child[Side]->Priority > At->Priority)
        rotate(At, Side);
}

size_t depth(const Node *At, uint64_t Key) {
    size_t Depth = 0;
    for (; At && At->Key != Key; At = At->Child[Key > At->Key])
        Depth++;
    return Depth;
}

double trees(size_t N, Random &Next) {
    std::vector<Node> Nodes(N);
    Node *Root = nullptr;
    for (Node &Own : Nodes) {
        Own = {Next(), Next(), {nullptr, nullptr}};
        insertInto(Root, &Own);
    }
    double Sum = 0;
    for (size_t I = 0; I < N; I++)
        Sum += static_cast<double>(depth(Root, Next()) + depth(Root, Nodes[Next() % N].Key));
    return Sum;
}

struct Entry {
    uint64_t Key;
    Entry *Further;
};

/** Chains; the table has twice as many places as soon as there are as many keys as places. */
class Chains {
  public:
    Chains() : Places(16) {}
    void insert(Entry *New) {
        if (++Number > Places.size())
            grow();
        Entry *&First = Places[New->Key % Places.size()];
        New->Further = First;
        First = New;
    }
    size_t length(uint64_t Key) const {
        size_t Length = 0;
        for (const Entry *At = Places[Key % Places.size()]; At && At->Key != Key; At = At->Further)
            Length++;
        return Length;
    }

  private:
    void grow() {
        std::vector<Entry *> Before(2 * Places.size());
        Before.swap(Places);
        for (Entry *At : Before)
            while (At) {
                Entry *Further = At->Further;
                Entry *&First = Places[At->Key % Places.size()];
                At->Further = First;
                First = At;
                At = Further;
            }
    }
    std::vector<Entry *> Places;
    size_t Number = 0;
};

double tables(size_t N, Random &Next) {
    std::vector<Entry> Entries(N);
    Chains Table;
    for (Entry &Own : Entries) {
        Own.Key = Next();
        Table.insert(&Own);
    }
    double Sum = 0;
    for (size_t I = 0; I < 2 * N; I++)
        Sum += static_cast<double>(Table.length(I % 2 ? Next() : Entries[Next() % N].Key));
    return Sum;
}

double residual(size_t N, const Keys &Middle, const Keys &Right, const Keys &X) {
    double Sum = 0;
    for (size_t I = 0; I < N; I++) {
        const double Off = Right[I] - Middle[I] * X[I] + (I ? X[I - 1] : 0) + (I + 1 < N ? X[I + 1] : 0);
        Sum += Off * Off;
    }
    return Sum;
}

void gaussSeidel(size_t N, const Keys &Middle, const Keys &Right, Keys &X) {
    for (size_t I = 0; I < N; I++)
        X[I] = (Right[I] + (I ? X[I - 1] : 0) + (I + 1 < N ? X[I + 1] : 0)) / Middle[I];
}

/** A line of n unknowns, less dominant the longer it is, so that there are the more iterations. */
double iterations(size_t N, Random &Next) {
    const Keys Right = draw(N, Next);
    Keys Middle(N, 2 + 20 / static_cast<double>(N)), X(N);
    for (double &Own : Middle)
        Own += 0.1 * Next.unit() / static_cast<double>(N);
    const double Enough = 1e-12 * residual(N, Middle, Right, X);
    while (residual(N, Middle, Right, X) > Enough)
        gaussSeidel(N, Middle, Right, X);
    return X[N / 2];
}

} // namespace

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(std::strtoull(argv[2], nullptr, 10));
    const char *What = argc > 3 ? argv[3] : "sorts";
    double (*Run)(size_t, Random &) = sorts;
    if (!std::strcmp(What, "searches"))
        Run = searches;
    else if (!std::strcmp(What, "trees"))
        Run = trees;
    else if (!std::strcmp(What, "tables"))
        Run = tables;
    else if (!std::strcmp(What, "iterations"))
        Run = iterations;
    std::printf("%.9g\n", Run(N, Next));
}
