// SPDX-License-Identifier: Apache-2.0
// Compressed sparse rows, and the distributed operator that is built on them.
#pragma once

#include "vector.hpp"

#include <cstdint>
#include <vector>

namespace cg {

// Rows are appended from the first to the last.
template <class Scalar> class CsrMatrix {
  public:
    void reserve(std::size_t rows, std::size_t entries);
    void append(std::size_t column, Scalar value) {
        columns_.push_back(static_cast<std::uint32_t>(column));
        values_.push_back(value);
    }
    void end_row() { row_begin_.push_back(columns_.size()); }

    std::size_t rows() const { return row_begin_.size() - 1; }
    std::size_t entries() const { return columns_.size(); }

    // y = A x, 2 * entries() floating-point operations.
    void multiply(const Scalar *x, Scalar *y) const;

  private:
    std::vector<std::size_t> row_begin_{0};
    std::vector<std::uint32_t> columns_;
    std::vector<Scalar> values_;
};

// -Laplacian + c on a periodic grid, with a reaction term c(x) from [1, 2): symmetric positive definite, seven
// entries in every row. Its eigenvalues lie in [1, 14] (Gershgorin).
template <class Scalar> class ReactionDiffusion {
  public:
    explicit ReactionDiffusion(const Partition &partition);

    // y = A x. Fills the ghost planes of x: two messages out and two in at any number of ranks.
    void apply(Vector<Scalar> &x, Vector<Scalar> &y) const;

    const Partition &partition() const { return partition_; }
    Scalar diagonal(std::size_t row) const { return diagonal_[row]; }

  private:
    void assemble();

    Partition partition_;
    CsrMatrix<Scalar> matrix_;
    std::vector<Scalar> diagonal_;
};

// Exchange the outermost planes with the ranks below and above.
template <class Scalar> void exchange_planes(const Partition &partition, Vector<Scalar> &x);

} // namespace cg
