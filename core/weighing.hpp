// What a squared distance counts for when a row chooses its center.
//
// Hartigan's comparison looks at the energy after both centers have followed the move: leaving cluster l of weight W_l
// saves W_l / (W_l - w) d_l^2, joining cluster j costs W_j / (W_j + w) d_j^2. What it settles on, Lloyd settles on too,
// but not the other way round. The plain comparison counts every distance once.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

class Weighing {
 public:
  Weighing(std::size_t n, const double* weights)
      : weights_(weights), heaviest_(weights ? *std::max_element(weights, weights + n) : 1.0) {}

  const double* weights() const { return weights_; }

  void plain() { size_.clear(); }
  void hartigan(std::span<const Label> labels, std::size_t k, Pool& pool) {
    const std::size_t part = std::max(labels.size() / kParts + 1, std::max(k, kMany));
    parts_.assign((labels.size() + part - 1) / part * k, 0.0);
    pool.for_chunks(labels.size(), part, [&](std::size_t a, std::size_t b, int) {
      double* size = parts_.data() + a / part * k;
      for (std::size_t i = a; i < b; ++i) size[labels[i]] += weight(i);
    });
    size_.assign(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(k));
    for (std::size_t p = k; p < parts_.size(); ++p) size_[p % k] += parts_[p];
  }

  // Of the distance of row i to its own center l, and to another.
  double own(std::size_t i, std::size_t l) const { return size_.empty() ? 1.0 : size_[l] / (size_[l] - weight(i)); }
  double other(std::size_t i, std::size_t j) const { return size_.empty() ? 1.0 : size_[j] / (size_[j] + weight(i)); }
  // Nothing is gained if it leaves: nobody else is there.
  bool alone(std::size_t i, std::size_t l) const { return !size_.empty() && size_[l] <= weight(i) * (1 + 0x1p-30); }

  // Center j can win a row only if it is nearer than this many times the root of what the row's best counts for.
  template <class T>
  T stretch(std::size_t j) const {
    if (size_.empty()) return T(1);
    return size_[j] > 0 ? T(std::sqrt((size_[j] + heaviest_) / size_[j]) * (1 + 8 * kUnit<T>)) : T(0x1p20);
  }

 private:
  static constexpr std::size_t kParts = 8, kMany = 1 << 14;  // parts of the rows; how many a part has at least

  double weight(std::size_t i) const { return weights_ ? weights_[i] : 1.0; }

  const double* weights_;
  double heaviest_;
  std::vector<double> parts_;  // of the weight of each cluster, by parts of the rows
  std::vector<double> size_;   // the weight of each cluster; empty: the plain comparison
};

}  // namespace k2
