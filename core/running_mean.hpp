// How MiniBatch moves centers: a little, towards each row they win.
#pragma once

#include <algorithm>
#include <vector>

#include "move.hpp"
#include "types.hpp"

namespace k2 {

// MiniBatch (Sculley 2010, Algorithm 1, lines 9-14): a center moves towards each row of the batch it has won, by one
// over the rows it has won so far.
template <class T>
class RunningMean {
 public:
  explicit RunningMean(Rows<const T> centers)
      : place_(centers.data, centers.data + centers.n * centers.d), won_(centers.n, 0) {}

  Moved operator()(Rows<const T> x, std::span<const Label> labels, Centers<T>& centers, Pool&) {
    for (std::size_t i = 0; i < x.n; ++i) {
      const auto j = static_cast<std::size_t>(labels[i]);
      const double rate = 1.0 / static_cast<double>(++won_[j]);
      double* c = place_.data() + j * x.d;
      for (std::size_t e = 0; e < x.d; ++e) c[e] += rate * (static_cast<double>(x[i][e]) - c[e]);
    }
    Moved out;
    out.ops.additions = x.n;
    std::fill(centers.drift.begin(), centers.drift.end(), 0.0);
    for (const Label l : labels) out.shift += follow(centers, static_cast<std::size_t>(l));
    return out;
  }

 private:
  // Bring center j to its place; once there it does not move again. Returns the squared drift.
  double follow(Centers<T>& centers, std::size_t j) {
    const double square = relocate(centers, j, [&](std::size_t e) { return place_[j * centers.d + e]; });
    if (square > 0) centers.drift[j] = upper_root(square);
    return square;
  }

  std::vector<double> place_;  // the centers in double: late steps are small
  std::vector<std::int64_t> won_;
};

}  // namespace k2
