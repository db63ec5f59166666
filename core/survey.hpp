// One pass over the data before anything else: is it finite, where is it, how wide is it.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
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
    std::vector<double> sum, square, low, high;
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
    p.low.assign(x.d, std::numeric_limits<double>::infinity());
    p.high.assign(x.d, -std::numeric_limits<double>::infinity());
    for (std::size_t r = a; r < b; ++r) {
      const T* row = x[r];
      const double w = weights ? weights[r] : 1.0;
      p.weight += w;
      double bad = 0.0;  // 0 * v is NaN for anything not finite
      for (std::size_t i = 0; i < x.d; ++i) {
        const double v = static_cast<double>(row[i]), z = v - static_cast<double>(origin[i]);
        bad += v * 0.0;
        p.sum[i] += w * z;
        p.square[i] += w * z * z;
        p.low[i] = v < p.low[i] ? v : p.low[i];
        p.high[i] = v > p.high[i] ? v : p.high[i];
      }
      if (bad == 0.0) continue;
      const auto i =
          static_cast<std::size_t>(std::find_if(row, row + x.d, [](T v) { return !std::isfinite(v); }) - row);
      p.bad_row = static_cast<std::int64_t>(r), p.bad_column = static_cast<std::int64_t>(i);
      break;
    }
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
  out.low = std::move(all.low), out.high = std::move(all.high);
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
