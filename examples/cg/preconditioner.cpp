// SPDX-License-Identifier: Apache-2.0
#include "preconditioner.hpp"

#include "errors.hpp"

#include <algorithm>
#include <string>

namespace cg {

namespace {

template <class Scalar> class Identity final : public Preconditioner<Scalar> {
  public:
    void apply(const Vector<Scalar> &r, Vector<Scalar> &z) const override { std::copy_n(r.data(), r.size(), z.data()); }
    double condition_bound() const override { return 14.0; } // eigenvalues in [1, 14]
};

template <class Scalar> class Jacobi final : public Preconditioner<Scalar> {
  public:
    explicit Jacobi(const ReactionDiffusion<Scalar> &matrix) {
        inverse_.reserve(matrix.partition().points());
        for (std::size_t row = 0; row < matrix.partition().points(); ++row)
            inverse_.push_back(1 / matrix.diagonal(row));
    }
    void apply(const Vector<Scalar> &r, Vector<Scalar> &z) const override {
        for (std::size_t i = 0; i < r.size(); ++i)
            z[i] = inverse_[i] * r[i];
    }
    // Rows of D^-1 A: 1 on the diagonal and six entries -1/(6 + c), c >= 1, so eigenvalues lie in [1/7, 13/7].
    double condition_bound() const override { return 13.0; }

  private:
    std::vector<Scalar> inverse_;
};

} // namespace

template <class Scalar>
std::unique_ptr<Preconditioner<Scalar>> make_preconditioner(std::string_view name,
                                                            const ReactionDiffusion<Scalar> &matrix) {
    if (name == "none")
        return std::make_unique<Identity<Scalar>>();
    if (name == "jacobi")
        return std::make_unique<Jacobi<Scalar>>(matrix);
    throw UsageError("wrong PRECONDITIONER '" + std::string(name) + "'");
}

template std::unique_ptr<Preconditioner<double>> make_preconditioner(std::string_view,
                                                                     const ReactionDiffusion<double> &);

} // namespace cg
