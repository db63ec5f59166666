// The directions in which the data is widest.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "types.hpp"

namespace k2 {

// Orthonormal directions, `count` rows of d, widest first: principal axes of a sample, by subspace iteration on its
// Gram matrix. Directions the sample does not have are zero. The same bits for any number of threads, on any CPU.
template <class T>
class PrincipalAxes {
 public:
  PrincipalAxes(Rows<const T> x, const std::vector<double>& mean, std::size_t count, std::uint64_t seed,
                std::size_t used_for, Pool& pool)
      : x_(x), mean_(mean), count_(count) {
    constexpr std::size_t kValues = std::size_t{1} << 20;
    const std::size_t most = std::clamp<std::size_t>(used_for / 48, 96, 512);  // in proportion to the rows
    const std::size_t m = std::min(x.n, std::clamp<std::size_t>(kValues / x.d, 96, most));
    Random random(seed, 2);
    for (std::size_t i = 0; i < m; ++i) {  // one row out of each m-th part
      const std::size_t begin = i * x.n / m, end = (i + 1) * x.n / m;
      sample_.push_back(static_cast<Row>(begin + random.below(end - begin)));
    }
    multiply_sample(pool);
    iterate(random, pool);
    expand(pool);
  }

  const std::vector<double>& directions() const { return directions_; }

 private:
  // Of the sample's rows with each other, or of its columns, whichever are fewer: they have the same axes.
  void multiply_sample(Pool& pool) {
    const std::size_t m = sample_.size(), d = x_.d;
    side_ = std::min(m, d);
    gram_.assign(side_ * side_, 0.0);
    if (are_directions()) {
      pool.for_chunks(d, 1, [&](std::size_t c, std::size_t, int) {
        for (const Row i : sample_) {
          kernel_.accumulate(x_[i], mean_.data(), static_cast<double>(x_[i][c]) - mean_[c], gram_.data() + c * d, d);
        }
      });
      return;
    }
    pool.for_chunks(m, 1, [&](std::size_t j, std::size_t, int) {
      std::vector<double> z(d);
      double offset = 0.0;
      for (std::size_t c = 0; c < d; ++c) {
        z[c] = static_cast<double>(x_[sample_[j]][c]) - mean_[c];
        offset += z[c] * mean_[c];
      }
      for (std::size_t i = 0; i <= j; ++i) {
        gram_[j * m + i] = gram_[i * m + j] = kernel_.project(x_[sample_[i]], z.data(), d) - offset;
      }
    });
  }

  bool are_directions() const { return x_.d < sample_.size(); }  // and not combinations of the sample's rows

  void iterate(Random& random, Pool& pool) {
    constexpr int kIterations = 4;
    const std::size_t m = side_, wanted = std::min(m, count_ + 9);
    std::vector<double> next(wanted * m);
    axes_.resize(wanted * m);
    for (double& v : axes_) v = random.uniform() - 0.5;
    for (int t = 0; t < kIterations; ++t) {
      pool.for_chunks(wanted, 1, [&](std::size_t j, std::size_t, int) {
        for (std::size_t i = 0; i < m; ++i) {
          next[j * m + i] = kernels<double>().project(gram_.data() + i * m, axes_.data() + j * m, m);
        }
        normalize(next.data() + j * m, m);
      });
      axes_.swap(next);
      // After two steps they are still far from being all the same; at the end, `expand` does it for combinations.
      if (t % 2 == 1 && (t + 1 < kIterations || are_directions())) orthonormalize(axes_, wanted, m);
    }
  }

  // From combinations of the sample's rows, if that is what they are, to directions of the space.
  void expand(Pool& pool) {
    const std::size_t m = side_, d = x_.d, have = std::min(count_, axes_.size() / m);
    directions_.assign(count_ * d, 0.0);
    if (are_directions()) {
      std::copy_n(axes_.begin(), have * d, directions_.begin());
      return;
    }
    pool.for_chunks(have, 1, [&](std::size_t j, std::size_t, int) {
      for (std::size_t i = 0; i < m; ++i) {
        kernel_.accumulate(x_[sample_[i]], mean_.data(), axes_[j * m + i], directions_.data() + j * d, d);
      }
    });
    orthonormalize(directions_, count_, d);
  }

  static void normalize(double* v, std::size_t d) {
    double largest = 0.0;  // its square may be too much for a double
    for (std::size_t c = 0; c < d; ++c) largest = std::max(largest, std::abs(v[c]));
    if (largest > 0) std::for_each(v, v + d, [&](double& value) { value /= largest; });
  }

  // Gram-Schmidt, twice over; what is left of a dependent row is nothing.
  static void orthonormalize(std::vector<double>& rows, std::size_t count, std::size_t d) {
    const auto project = kernels<double>().project;
    double largest = 0.0;
    for (std::size_t j = 0; j < count; ++j) {
      double* v = rows.data() + j * d;
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < j; ++i) {
          const double* u = rows.data() + i * d;
          const double along = project(v, u, d);
          for (std::size_t c = 0; c < d; ++c) v[c] -= along * u[c];
        }
        const double length = std::sqrt(project(v, v, d));
        if (round == 0) largest = std::max(largest, length);
        const double scale = length > largest * 0x1p-30 * (round == 0) ? 1 / length : 0.0;
        for (std::size_t c = 0; c < d; ++c) v[c] *= scale;
      }
    }
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const std::vector<double>& mean_;
  std::size_t count_, side_ = 0;  // of the Gram matrix
  std::vector<Row> sample_;
  std::vector<double> gram_, axes_, directions_;
};

}  // namespace k2
