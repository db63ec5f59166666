// Data for the tests, and the truth about it in plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "random.hpp"
#include "types.hpp"

namespace data {

using k2::Label;

inline double normal(k2::Random& random) {  // near enough: a sum of twelve uniforms
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

template <class T>
struct Matrix {
  std::size_t n, d;
  std::vector<T> value;
  Matrix(std::size_t n_, std::size_t d_) : n(n_), d(d_), value(n_ * d_) {}
  k2::Rows<const T> rows() const { return {value.data(), n, d}; }
  T* operator[](std::size_t i) { return value.data() + i * d; }
  const T* operator[](std::size_t i) const { return value.data() + i * d; }
};

// Overlapping clumps: rows keep changing clusters for many iterations.
template <class T>
Matrix<T> blobs(std::size_t n, std::size_t d, std::size_t clumps, std::uint64_t seed) {
  k2::Random random(seed, 9);
  Matrix<T> middles(clumps, d), out(n, d);
  for (T& v : middles.value) v = T(2 * normal(random));
  for (std::size_t i = 0; i < n; ++i) {
    const T* middle = middles[random.below(clumps)];
    for (std::size_t c = 0; c < d; ++c) out[i][c] = T(middle[c] + normal(random));
  }
  return out;
}

// Small integers: duplicates and exact ties everywhere, and sums that are exact in any order.
template <class T>
Matrix<T> grid(std::size_t n, std::size_t d, int side, std::uint64_t seed) {
  k2::Random random(seed, 8);
  Matrix<T> out(n, d);
  for (T& v : out.value) v = T(random.below(static_cast<std::uint64_t>(side)));
  return out;
}

template <class T>
double squared_distance(const T* a, const T* b, std::size_t d) {
  long double s = 0;
  for (std::size_t i = 0; i < d; ++i) {
    const long double z = static_cast<long double>(a[i]) - static_cast<long double>(b[i]);
    s += z * z;
  }
  return static_cast<double>(s);
}

// Ties: the current label if it is among the nearest, else the lowest. For small integers, whose distances are exact.
template <class T>
Label nearest(const T* x, const Matrix<T>& centers, Label current) {
  std::vector<double> s(centers.n, 0.0);
  for (std::size_t j = 0; j < centers.n; ++j) {
    for (std::size_t i = 0; i < centers.d; ++i) s[j] += double(x[i] - centers[j][i]) * double(x[i] - centers[j][i]);
  }
  const auto best = std::min_element(s.begin(), s.end());
  if (current >= 0 && s[static_cast<std::size_t>(current)] == *best) return current;
  return static_cast<Label>(best - s.begin());
}

}  // namespace data
