// SPDX-License-Identifier: Apache-2.0
// Call-heavy C++: tiny accessors in hot loops, which an optimizer inlines and early instrumentation keeps apart.
#include <cstdio>
#include <cstdlib>
#include <vector>

template <class T> class Field {
  public:
    Field(int nx, int ny) : nx_(nx), data_(static_cast<size_t>(nx) * static_cast<size_t>(ny)) {}
    T &at(int i, int j) { return data_[index(i, j)]; }
    const T &at(int i, int j) const { return data_[index(i, j)]; }
    int nx() const { return nx_; }
    int ny() const { return static_cast<int>(data_.size()) / nx_; }

  private:
    size_t index(int i, int j) const {
        return static_cast<size_t>(j) * static_cast<size_t>(nx_) + static_cast<size_t>(i);
    }
    int nx_;
    std::vector<T> data_;
};

class Point {
  public:
    explicit Point(double value) : value_(value) {}
    double value() const { return value_; }
    Point operator+(const Point &other) const { return Point(value() + other.value()); }
    Point operator*(double by) const { return Point(value() * by); }

  private:
    double value_;
};

static void relax(const Field<double> &from, Field<double> &to) {
    for (int j = 1; j + 1 < from.ny(); j++)
        for (int i = 1; i + 1 < from.nx(); i++) {
            Point sum = Point(from.at(i - 1, j)) + Point(from.at(i + 1, j)) + Point(from.at(i, j - 1)) +
                        Point(from.at(i, j + 1));
            to.at(i, j) = (sum * 0.25).value();
        }
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 512;
    Field<double> a(n, n), b(n, n);
    for (int i = 0; i < n; i++)
        a.at(i, 0) = b.at(i, 0) = 1.0;
    for (int step = 0; step < 200; step++) {
        relax(a, b);
        relax(b, a);
    }
    printf("%.15e\n", a.at(n / 2, 1));
}
