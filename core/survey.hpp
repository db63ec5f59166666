// One pass over the data before anything else: is it finite, where is it, how wide is it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

struct Survey {
  std::int64_t bad_row = -1, bad_column = -1;      // the first value that is not finite, or -1
  std::vector<double> mean, deviation, low, high;  // of each column
  double total = 0.0;                              // weighted sum of squared distances to the mean
  double weight = 0.0, lightest = 1.0, heaviest = 1.0;
};

template <class T>
Survey survey_rows(Rows<const T> x, const double* weights, Pool& pool) {
  constexpr std::size_t kChunk = 1024;
  // Sums are taken about the first row, so that an offset common to all rows costs no digits.
  struct Part {
    std::vector<double> sum, square;
    std::vector<T> low, high;
    double weight = 0.0;
    std::int64_t bad_row = -1, bad_column = -1;
    Part& operator+=(const Part& o) {
      if (sum.empty()) return *this = o;
      if (bad_row < 0) bad_row = o.bad_row, bad_column = o.bad_column;
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += o.sum[i], square[i] += o.square[i];
        low[i] = std::min(low[i], o.low[i]), high[i] = std::max(high[i], o.high[i]);
      }
      weight += o.weight;
      return *this;
    }
  };
  const T* origin = x[0];
  auto look = [&](std::size_t a, std::size_t b, int) {
    Part p;
    p.sum.assign(x.d, 0.0), p.square.assign(x.d, 0.0);
    p.low.assign(x.d, std::numeric_limits<T>::infinity()), p.high.assign(x.d, -std::numeric_limits<T>::infinity());
    kernels<T>().extent(x[a], b - a, x.d, origin, weights ? weights + a : nullptr, p.sum.data(), p.square.data(),
                        p.low.data(), p.high.data());
    p.weight = weights ? std::accumulate(weights + a, weights + b, 0.0) : static_cast<double>(b - a);
    // What is not finite shows in the sum of its column. Sums of finite values may overflow too.
    if (std::all_of(p.sum.begin(), p.sum.end(), [](double s) { return std::isfinite(s); })) return p;
    const T* bad = std::find_if(x[a], x[a] + (b - a) * x.d, [](T v) { return !std::isfinite(v); });
    const auto at = static_cast<std::size_t>(bad - x[a]);
    if (at == (b - a) * x.d) return p;
    p.bad_row = static_cast<std::int64_t>(a + at / x.d), p.bad_column = static_cast<std::int64_t>(at % x.d);
    return p;
  };
  // In waves, so that the parts held at once do not grow with n.
  Part all;
  const std::size_t wave = 64 * kChunk;
  for (std::size_t a = 0; a < x.n && all.bad_row < 0; a += wave) {
    all += pool.tally<Part>(std::min(wave, x.n - a), kChunk,
                            [&](std::size_t b, std::size_t e, int w) { return look(a + b, a + e, w); });
  }

  Survey out;
  out.bad_row = all.bad_row, out.bad_column = all.bad_column;
  out.weight = all.weight;
  out.low.assign(all.low.begin(), all.low.end()), out.high.assign(all.high.begin(), all.high.end());
  out.mean.resize(x.d), out.deviation.resize(x.d);
  for (std::size_t i = 0; i < x.d; ++i) {
    const double shift = all.sum[i] / all.weight;
    out.mean[i] = static_cast<double>(origin[i]) + shift;
    const double left = all.square[i] - all.weight * shift * shift;
    const double spread = left < 0.0 ? 0.0 : left;  // not finite if the squares overflow, which Python refuses
    out.total += spread;
    out.deviation[i] = std::sqrt(spread / all.weight);
  }
  if (weights) {
    out.lightest = *std::min_element(weights, weights + x.n);
    out.heaviest = *std::max_element(weights, weights + x.n);
  }
  return out;
}

}  // namespace k2
