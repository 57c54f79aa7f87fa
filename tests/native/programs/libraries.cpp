// SPDX-License-Identifier: Apache-2.0
// Libraries of headers, whose insides are part of their callers, and a program that uses them.
#include <cstdio>
#include <memory>
#include <vector>
namespace grid {
namespace Impl {
template <class T> struct Allocation {
    explicit Allocation(long n) : items(static_cast<T *>(::operator new(n * sizeof(T)))) {}
    ~Allocation() { ::operator delete(items); }
    T *items;
};
template <class F> struct Loop {
    const F &body;
    void run(long n) const {
        for (long i = 0; i < n; i++)
            step(i);
    }
    void step(long i) const { body(i); }
};
inline long rounded(long n) {
    while (n % 8)
        n++;
    return n;
}
} // namespace Impl
template <class T> class Field {
  public:
    explicit Field(long n) : length(n), memory(Impl::rounded(n)) {
        for (long i = 0; i < n; i++)
            memory.items[i] = T(i);
    }
    Field(const Field &other) : Field(other.length) {}
    ~Field() { last = memory.items[length - 1]; }
    T &operator()(long i) const { return memory.items[i]; }
    long size() const { return length; }
    T last{};

  private:
    long length;
    Impl::Allocation<T> memory;
};
template <class F> void each(long n, const F &body) { Impl::Loop<F>{body}.run(n); }
} // namespace grid

namespace tool { // all of it is in its namespace for the implementation
namespace detail {
template <class T> void scale(T *first, T *last) {
    for (; first != last; ++first)
        *first *= 2;
}
} // namespace detail
using detail::scale;
} // namespace tool

namespace app { // the program's own, with a namespace of such a name
namespace detail {
static double weight(long i) { return 1.0 / (1 + i); }
double total(const grid::Field<double> &field) {
    double sum = 0;
    for (long i = 0; i < field.size(); i++)
        sum += field(i) * weight(i);
    return sum;
}
} // namespace detail
inline double twice(double x) { return 2 * x; }
struct Half {
    const grid::Field<double> &field;
    double of(long i) const { return field(i) / 2; }
    void operator()(long i) const { field(i) = of(i); }
};
} // namespace app

class Solver { // what it hides is a class, no namespace
  public:
    class Impl;
    Solver();
    ~Solver();
    double solve(long n);
    std::unique_ptr<Impl> hidden;
};
class Solver::Impl {
  public:
    explicit Impl(double start) : value(start) {}
    void step(long i) { value += app::twice(i); }
    double value;
};
Solver::Solver() : hidden(new Impl(1)) {}
Solver::~Solver() = default;
double Solver::solve(long n) {
    for (long i = 0; i < n; i++)
        hidden->step(i);
    return hidden->value;
}

int main(int argc, char **) {
    grid::Field<double> field(1000 * argc);
    grid::each(field.size(), app::Half{field});
    grid::each(field.size(), [&](long i) { field(i) += 1; });
    const grid::Field<double> copy(field);
    tool::scale(&field(0), &field(0) + field.size());
    std::printf("%g %g\n", app::detail::total(copy), Solver().solve(10));
}
