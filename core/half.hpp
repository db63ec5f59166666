// What is known of a cluster, or of one half of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "distance.hpp"
#include "types.hpp"

namespace k2 {

struct Half {
  std::vector<double> mean;
  double energy = 0.0, weight = 0.0;
};

// Of a half: lighter than that part of the other, little is left of its digits beside it.
inline constexpr double kLight = 0x1p-20;

// Means and energies of both halves from the sum of a about the mean of the whole, its weight and its spread, and the
// weight of the rest: no pass over the rows (Lemma 1).
inline void halve(const Half& whole, const std::vector<double>& sum, double weight, double rest, double spread, Half& a,
                  Half& b) {
  a.mean = b.mean = whole.mean;
  double square = 0.0;
  for (std::size_t i = 0; i < whole.mean.size(); ++i) {
    a.mean[i] += sum[i] / weight;
    b.mean[i] -= sum[i] / rest;
    square += sum[i] * sum[i];
  }
  a.weight = weight, b.weight = rest;
  a.energy = std::max(0.0, spread - square / weight);
  b.energy = std::max(0.0, whole.energy - spread - square / rest);
}

// Of `count` rows, of which row_at(i) is the i-th.
template <class T, class RowAt>
Half half_of(Rows<const T> x, const double* weights, std::size_t count, RowAt&& row_at) {
  Half half;
  half.mean.assign(x.d, 0.0);
  if (count == 0) return half;
  const T* first = x[row_at(0)];
  const std::vector<double> origin(first, first + x.d);
  for (std::size_t i = 0; i < count; ++i) {
    const double w = weights ? weights[row_at(i)] : 1.0;
    kernels<T>().accumulate(x[row_at(i)], origin.data(), w, half.mean.data(), x.d);
    half.weight += w;
  }
  for (std::size_t c = 0; c < x.d; ++c) half.mean[c] = origin[c] + half.mean[c] / half.weight;
  for (std::size_t i = 0; i < count; ++i) {
    const T* row = x[row_at(i)];
    double square = 0.0;
    for (std::size_t c = 0; c < x.d; ++c) {
      const double z = static_cast<double>(row[c]) - half.mean[c];
      square += z * z;
    }
    half.energy += square * (weights ? weights[row_at(i)] : 1.0);
  }
  return half;
}

}  // namespace k2
