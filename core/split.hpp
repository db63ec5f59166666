// Projective Split (Algorithm 3): the best cut of a cluster by a hyperplane, across the line between two centers.
//
// All sums are about the cluster's mean: with z = x - mean and P_l the sum of the first l of them, cutting after l rows
// lowers the energy by ||P_l||^2 (1/l + 1/(m-l)) (weights in place of counts, if there are any). One running sum, and
// none of the cancellation of sum ||x||^2 - ||sum x||^2 / l.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "distance.hpp"
#include "half.hpp"
#include "parallel.hpp"
#include "plane_tree.hpp"
#include "random.hpp"
#include "types.hpp"
#include "value_sort.hpp"

namespace k2 {

template <class T>
class ProjectiveSplit {
 public:
  struct Result {
    std::size_t left = 0;  // rows in the first half; 0: all rows are equal, there is nothing to cut
    Half a, b;
    Ops ops;
    std::unique_ptr<Result> inside[2] = {};  // splits of the halves, if they were found along with it
  };

  ProjectiveSplit(Rows<const T> x, const double* weights) : x_(x), weights_(weights) {}

  // Cuts `rows` and puts the first half's rows in front, both halves in their old order.
  Result operator()(std::span<Row> rows, const Half& whole, int iterations, Random random, Pool& pool) {
    Result best;
    if (rows.size() < 2 || !first_direction(rows, whole, random)) return best;
    for (int t = 0; t < iterations; ++t) {
      if (t > 0) direct_between(best);
      last_side_.swap(side_);
      if (!cut_sorted(rows, whole, best, pool)) {
        last_side_.swap(side_);
        break;
      }
      if (t > 0 && side_ == last_side_) break;  // converged
    }
    if (best.left > 0) part(rows, best.left);
    return best;
  }

  const Plane& plane() const { return plane_; }  // of the last split

 private:
  // c_a - c_b for two random rows (line 2); if they keep being equal, from the mean to the row farthest from it.
  bool first_direction(std::span<const Row> rows, const Half& whole, Random& random) {
    direction_.resize(x_.d);
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::size_t a = random.below(rows.size()), b = (a + 1 + random.below(rows.size() - 1)) % rows.size();
      if (point(x_[rows[a]], x_[rows[b]])) return true;
    }
    std::vector<T> center(whole.mean.begin(), whole.mean.end());
    double most = 0.0;
    std::size_t far = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double s = kernel_.squared_distance(x_[rows[i]], center.data(), x_.d);
      if (s > most) most = s, far = i;
    }
    for (const Row i : rows) {
      if (point(x_[rows[far]], x_[i])) return point(x_[rows[far]], center.data());
    }
    return false;  // all rows are equal
  }
  void direct_between(const Result& halves) {
    for (std::size_t i = 0; i < x_.d; ++i) direction_[i] = halves.a.mean[i] - halves.b.mean[i];
  }
  bool point(const T* a, const T* b) {
    bool apart = false;
    for (std::size_t i = 0; i < x_.d; ++i) {
      direction_[i] = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      apart = apart || direction_[i] != 0.0;
    }
    return apart;
  }

  // `among`: of how many places one is found for each row.
  void charge(std::size_t m, std::size_t among, Ops& ops) const {
    ops.products += m, ops.additions += m, ops.distances += m;
    ops.sorts += static_cast<double>(m) * std::log2(static_cast<double>(among)) / static_cast<double>(x_.d);
  }

  // False: no two rows differ along this line.
  bool cut_sorted(std::span<const Row> rows, const Half& whole, Result& best, Pool& pool) {
    sort_along_direction(rows, whole, pool);
    charge(rows.size(), rows.size(), best.ops);
    side_.assign(rows.size(), 1);
    if (!find_cut(rows, whole, best, pool)) return false;
    for (std::size_t i = 0; i < best.left; ++i) side_[sorted_[i].second] = 0;
    return true;
  }

  // Lines 4-6. Projections are about the mean, so that their small differences keep their digits.
  void sort_along_direction(std::span<const Row> rows, const Half& whole, Pool& pool) {
    const std::size_t share = rows.size() / static_cast<std::size_t>(pool.size()) + 1;
    const std::size_t chunk = std::clamp<std::size_t>(share, 4096, 65536);  // the order does not depend on it
    sorted_.resize(rows.size());
    sort_.resize(static_cast<std::size_t>(pool.size()));
    origin_ = along(whole.mean);
    const std::size_t ahead = rows_ahead<T>(x_.d);
    pool.for_chunks(rows.size(), chunk, [&](std::size_t a, std::size_t b, int worker) {
      for (std::size_t i = a; i < b; ++i) {
        if (i + ahead < b) prefetch_row(x_[rows[i + ahead]], x_.d);
        sorted_[i] = {kernel_.project(x_[rows[i]], direction_.data(), x_.d) - origin_, static_cast<Row>(i)};
      }
      sort_[static_cast<std::size_t>(worker)]({sorted_.data() + a, b - a});
    });
    for (std::size_t run = chunk; run < rows.size(); run *= 2) {
      pool.for_chunks(rows.size(), 2 * run, [&](std::size_t a, std::size_t b, int) {
        if (a + run < b) std::inplace_merge(begin_at(a), begin_at(a + run), begin_at(b));
      });
    }
  }
  double along(const std::vector<double>& mean) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < x_.d; ++i) sum += mean[i] * direction_[i];
    return sum;
  }
  auto begin_at(std::size_t i) { return sorted_.begin() + static_cast<std::ptrdiff_t>(i); }

  // Lines 7-11: scan the hyperplane through the rows. Equal projections stay on one side.
  bool find_cut(std::span<const Row> rows, const Half& whole, Result& best, Pool& pool) {
    const std::size_t d = x_.d, m = rows.size(), panel = pool.size() > 1 ? 2048 : 32;
    const std::size_t strip = std::max<std::size_t>(64, (d / 8 + 15) / 16 * 16), strips = (d + strip - 1) / strip;
    const std::size_t share =
        (strips + static_cast<std::size_t>(pool.size()) - 1) / static_cast<std::size_t>(pool.size());
    sum_.assign(d, 0.0);
    weigh_tails(rows);
    order_.resize(panel), listed_weights_.resize(weights_ ? panel : 0);
    square_.resize(strips * panel), spread_.resize(strips * panel);
    double weight = 0.0, spread = 0.0, most = -1.0, cut_weight = 0.0, cut_rest = 0.0, cut_spread = 0.0;
    std::size_t cut = 0, cut_panel = 0;
    for (std::size_t first = 0; first < m; first += panel) {
      const std::size_t count = std::min(panel, m - first);
      gather(rows, first, count);
      before_ = sum_;
      // Threads share the columns; each strip's part of the sums is its own, so they are the same for any sharing.
      pool.for_chunks(strips, share, [&](std::size_t a, std::size_t b, int) {
        kernel_.scan(
            {x_.data, d, order_.data(), listed_weights(), count, a * strip, std::min(d, b * strip), strip, panel},
            whole.mean.data(), sum_.data(), square_.data(), spread_.data());
      });
      bool here = false;
      for (std::size_t i = 0; i < count && first + i + 1 < m; ++i) {
        double p = 0.0, z = 0.0;
        for (std::size_t s = 0; s < strips; ++s) p += square_[s * panel + i], z += spread_[s * panel + i];
        spread += z;
        weight += weights_ ? listed_weights_[i] : 1.0;
        if (sorted_[first + i].first == sorted_[first + i + 1].first) continue;
        const double rest = weights_ ? tail_[first + i] : whole.weight - weight;
        const double gain = p * whole.weight / (weight * rest);
        if (gain <= most) continue;
        most = gain, cut = first + i + 1, cut_panel = first;
        cut_weight = weight, cut_rest = rest, cut_spread = spread;
        here = true;
      }
      if (here) kept_ = before_;
    }
    if (cut == 0) return false;
    // The running sum at the cut: the one kept before its panel, and the rows up to the cut again.
    gather(rows, cut_panel, cut - cut_panel);
    for (std::size_t i = 0; i < cut - cut_panel; ++i) {
      kernel_.accumulate(x_[order_[i]], whole.mean.data(), weights_ ? listed_weights_[i] : 1.0, kept_.data(), d);
    }
    halve(whole, kept_, cut_weight, cut_rest, cut_spread, best.a, best.b);
    // Beside a very heavy half, little is left of the light one's digits: look at it again.
    if (cut_weight < kLight * cut_rest) best.a = look_at(rows, 0, cut);
    if (cut_rest < kLight * cut_weight) best.b = look_at(rows, cut, m);
    best.left = cut;
    plane_.direction = direction_;
    plane_.at = origin_ + (sorted_[cut - 1].first + sorted_[cut].first) / 2;
    return true;
  }

  // tail_[i]: the weight of the sorted rows after i. What is left of a difference may be nothing.
  void weigh_tails(std::span<const Row> rows) {
    if (!weights_) return;
    tail_.assign(rows.size(), 0.0);
    for (std::size_t i = rows.size() - 1; i > 0; --i) tail_[i - 1] = tail_[i] + weights_[rows[sorted_[i].second]];
  }

  void gather(std::span<const Row> rows, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      order_[i] = rows[sorted_[first + i].second];
      if (weights_) listed_weights_[i] = weights_[order_[i]];
    }
  }
  const double* listed_weights() const { return weights_ ? listed_weights_.data() : nullptr; }

  // Weight, mean and energy of the sorted rows [begin, end), from the rows themselves.
  Half look_at(std::span<const Row> rows, std::size_t begin, std::size_t end) const {
    return half_of(x_, weights_, end - begin, [&](std::size_t i) { return rows[sorted_[begin + i].second]; });
  }

  void part(std::span<Row> rows, std::size_t left) {
    order_.resize(rows.size());
    Row* end[] = {order_.data(), order_.data() + left};
    for (std::size_t i = 0; i < rows.size(); ++i) *end[side_[i]]++ = rows[i];
    std::copy(order_.begin(), order_.end(), rows.begin());
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  Plane plane_;
  std::vector<double> direction_;
  double origin_ = 0.0;  // of projections: the mean's
  std::vector<std::pair<double, Row>> sorted_;
  std::vector<ValueSort> sort_;                  // one for each worker, for its scratch
  std::vector<unsigned char> side_, last_side_;  // of each row, by its place in `rows`
  // Scratch of find_cut: the panel of rows scanned at once, and the running sum: now, before the panel, at the cut.
  std::vector<Row> order_;
  std::vector<double> tail_, listed_weights_, square_, spread_, sum_, before_, kept_;
};

}  // namespace k2
