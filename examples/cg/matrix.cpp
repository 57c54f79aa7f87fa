// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

namespace cg {

template <class Scalar> void CsrMatrix<Scalar>::reserve(std::size_t rows, std::size_t entries) {
    row_begin_.reserve(rows + 1);
    columns_.reserve(entries);
    values_.reserve(entries);
}

template <class Scalar> void CsrMatrix<Scalar>::multiply(const Scalar *x, Scalar *y) const {
    for (std::size_t row = 0; row < rows(); ++row) {
        Scalar sum = 0;
        for (std::size_t entry = row_begin_[row]; entry < row_begin_[row + 1]; ++entry)
            sum += values_[entry] * x[columns_[entry]];
        y[row] = sum;
    }
}

template class CsrMatrix<double>;

} // namespace cg
