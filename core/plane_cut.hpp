// Many rows cut by a given hyperplane: the side of each, and what is known of both sides. The rows are read only once.
#pragma once

#include <algorithm>
#include <vector>

#include "distance.hpp"
#include "half.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class PlaneCut {
 public:
  PlaneCut(Rows<const T> x, const double* weights) : x_(x), weights_(weights) {}

  // Rows not beyond `at` along the direction are of side 0 and become half a, the others of side 1 become half b.
  // Returns how many are in a; 0 if hardly anything is on one of the sides, whose halves then are not made.
  std::size_t operator()(const std::vector<double>& direction, double at, std::span<const Row> rows, const Half& whole,
                         std::vector<unsigned char>& side, Half& a, Half& b, Pool& pool) {
    // The same for any number of threads, and not so many that their sums would take much memory.
    const std::size_t chunk = std::max<std::size_t>(16384, rows.size() / 64 + 1), d = x_.d;
    side.resize(rows.size());
    parts_.assign((rows.size() + chunk - 1) / chunk * (d + 2), 0.0);  // sum, spread and weight
    pool.for_chunks(rows.size(), chunk, [&](std::size_t i, std::size_t end, int) {
      double* sum = parts_.data() + i / chunk * (d + 2);
      kernel_.cut({x_.data, d, rows.data() + i, weights_, end - i, direction.data(), at}, whole.mean.data(), sum,
                  sum + d, sum + d + 1, side.data() + i);
    });
    for (std::size_t p = d + 2; p < parts_.size(); ++p) parts_[p % (d + 2)] += parts_[p];
    const double spread = parts_[d], weight = parts_[d + 1], rest = whole.weight - weight;
    if (!(weight > kLight * rest && rest > kLight * weight)) return 0;
    halve(whole, parts_, weight, rest, spread, a, b);
    return static_cast<std::size_t>(std::count(side.begin(), side.end(), 0));
  }

 private:
  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  std::vector<double> parts_;
};

}  // namespace k2
