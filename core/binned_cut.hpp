// Where to cut many rows along a line: between two of 256 bins. Nothing is sorted, and the rows are read only once.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "distance.hpp"
#include "half.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class BinnedCut {
 public:
  static constexpr std::size_t kBins = 256, kDepth = 8;  // comparisons to find a row's bin

  // Its left side: the sum about the mean of all, the weight and the spread; the weight of the other; the last bin.
  struct Cut {
    std::vector<double> sum;
    double weight = 0.0, rest = 0.0, spread = 0.0;
    std::size_t last = 0, rows = 0;
  };

  BinnedCut(Rows<const T> x, const double* weights) : x_(x), weights_(weights) {}

  // `place(row)` is where a row lies on the line; `sample`: some of these places in order, of which the bins are made.
  // bin[i] becomes that of rows[i]. Rows of the best cut's left side are 0 if there is none.
  template <class Place>
  Cut operator()(std::span<const Row> rows, const Half& whole, std::span<const double> sample, Place&& place,
                 std::span<unsigned char> bin, Pool& pool) {
    std::array<double, kBins> edge;  // the last of each bin
    for (std::size_t b = 0; b + 1 < kBins; ++b) edge[b] = sample[(b + 1) * sample.size() / kBins];
    edge[kBins - 1] = std::numeric_limits<double>::infinity();
    // The same for any number of threads, and not so many that their bins would take much memory.
    const std::size_t chunk = std::max<std::size_t>(16384, rows.size() / 64 + 1), ahead = rows_ahead<T>(x_.d);
    parts_.resize((rows.size() + chunk - 1) / chunk);
    pool.for_chunks(rows.size(), chunk, [&](std::size_t a, std::size_t b, int) {
      Bins& part = parts_[a / chunk];
      part.clear(x_.d);
      for (std::size_t i = a; i < b; ++i) {
        if (i + ahead < b) prefetch_row(x_[rows[i + ahead]], x_.d);
        const std::size_t e = find(edge, place(rows[i]));
        bin[i] = static_cast<unsigned char>(e);
        part.add(kernel_, x_, rows[i], weights_, whole.mean.data(), e);
      }
    });
    for (std::size_t p = 1; p < parts_.size(); ++p) parts_[0].merge(parts_[p]);
    return best_of(parts_[0], whole);
  }

 private:
  struct Bins {
    std::vector<double> sum;  // kBins x d
    std::array<double, kBins> weight, spread;
    std::array<std::size_t, kBins> rows;

    void clear(std::size_t d) { sum.assign(kBins * d, 0.0), weight.fill(0.0), spread.fill(0.0), rows.fill(0); }
    void add(const Kernels<T>& kernel, Rows<const T> x, const Row& row, const double* weights, const double* mean,
             std::size_t b) {
      double square, more;
      const double w = weights ? weights[row] : 1.0;
      kernel.scan({x.data, x.d, &row, weights ? &w : nullptr, 1, 0, x.d, x.d, 1}, mean, sum.data() + b * x.d, &square,
                  &more);
      weight[b] += w, spread[b] += more, ++rows[b];
    }
    void merge(const Bins& other) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other.sum[i];
      for (std::size_t b = 0; b < kBins; ++b) {
        weight[b] += other.weight[b], spread[b] += other.spread[b], rows[b] += other.rows[b];
      }
    }
  };

  static std::size_t find(const std::array<double, kBins>& edge, double place) {
    std::size_t b = 0;
    for (std::size_t step = kBins / 2; step > 0; step /= 2)
      b += step * static_cast<std::size_t>(edge[b + step - 1] < place);
    return b;
  }

  // As ProjectiveSplit::find_cut, with bins in place of rows.
  Cut best_of(const Bins& bins, const Half& whole) const {
    Cut left, best;
    left.sum.assign(x_.d, 0.0);
    double most = -1.0;
    std::array<double, kBins> tail{};
    for (std::size_t b = kBins - 1; b > 0; --b) tail[b - 1] = tail[b] + bins.weight[b];
    for (std::size_t b = 0; b < kBins; ++b) {
      double square = 0.0;
      for (std::size_t i = 0; i < x_.d; ++i) {
        left.sum[i] += bins.sum[b * x_.d + i];
        square += left.sum[i] * left.sum[i];
      }
      left.weight += bins.weight[b], left.spread += bins.spread[b], left.rows += bins.rows[b];
      left.last = b, left.rest = tail[b];
      if (left.rows == 0 || !(left.rest > 0)) continue;
      const double gain = square * whole.weight / (left.weight * left.rest);
      if (gain > most) most = gain, best = left;
    }
    return best;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  std::vector<Bins> parts_;
};

}  // namespace k2
