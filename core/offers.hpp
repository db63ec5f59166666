// What it costs a row to be at a center: the weighted squared distance, and a price that the center asks. For every row
// the few centers that cost least are kept, and a bound on all others.
//
// Prices only rise. So what was not kept stays above the bound it was left out for, and a row need not look again until
// all that it kept have risen above it. Of many centers it looks at first at the neighbors of those near it, as in
// k²-means; others are taken to cost more than the last kept. When it looks again, it looks at all.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "distance.hpp"
#include "large.hpp"
#include "neighbors.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "several.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class Offers {
 public:
  struct Two {
    Label best;
    double first, second;  // what the best one costs, and at least any other
    bool is_known;         // else another center may be better: look again
  };

  Offers(Rows<const T> x, const double* weights, Rows<const T> centers, Pool& pool)
      : x_(x), weights_(weights), centers_(centers), kept_(std::min(kMost, centers.n)) {
    cost_.resize(x.n * kept_), id_.resize(x.n * kept_), beyond_.resize(x.n);
    all_.pack(centers, nullptr, pool);
  }

  // All rows, while all prices are zero. `labels`: of each row a center near it.
  Ops look(std::span<const Label> labels, Pool& pool) {
    if (centers_.n <= kFew) {
      std::vector<Row> rows(x_.n);
      std::iota(rows.begin(), rows.end(), Row(0));
      return look_at_all(rows, std::vector<double>(centers_.n, 0.0), pool);
    }
    const Centers<T> centers(centers_.data, centers_.n, centers_.d);
    Neighbors graph;
    NeighborSearch<T>()(centers, std::min(kNear, centers.k), Neighbors(), graph, pool);
    std::vector<Near> near(static_cast<std::size_t>(pool.size()), {graph, Closest(kept_), {}, {}});
    Ops ops = pool.tally<Ops>(x_.n, 256, [&](std::size_t a, std::size_t b, int worker) {
      Ops counted;
      for (std::size_t i = a; i < b; ++i) {
        counted.distances += look_near(i, labels[i], near[static_cast<std::size_t>(worker)]);
      }
      return counted;
    });
    ops.distances += static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
    return ops;
  }

  // Some rows, at these prices.
  Ops look_at_all(std::span<const Row> rows, std::span<const double> prices, Pool& pool) {
    std::vector<Scratch> scratch(static_cast<std::size_t>(pool.size()), Scratch{{}, {}, {}, Closest(kept_)});
    return pool.tally<Ops>(rows.size(), kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch[static_cast<std::size_t>(worker)];
      const T* x[kBlock];
      Ops counted;
      s.dots.resize(kBlock * all_.size());
      for (std::size_t r = a; r < b; ++r) x[r - a] = x_[rows[r]];
      all_.panels.dots(x, b - a, 0, all_.panels.panels(), s.dots.data(), all_.size());
      for (std::size_t r = a; r < b; ++r) {
        counted.distances += look_at_all(rows[r], s.dots.data() + (r - a) * all_.size(), prices, s);
      }
      counted.products += (b - a) * centers_.n;
      return counted;
    });
  }

  std::size_t kept() const { return kept_; }
  Label nearest(std::size_t i) const { return id_[i * kept_]; }

  Two two_least(Row i, std::span<const double> prices) const {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    Two two{kUnassigned, kNone, kNone, true};
    const double* cost = &cost_[i * kept_];
    const Label* id = &id_[i * kept_];
    for (std::size_t s = 0; s < kept_ && cost[s] < two.second; ++s) {  // by cost: no price can make up for more
      const double value = cost[s] + prices[static_cast<std::size_t>(id[s])];
      if (value < two.first) {
        two.second = two.first, two.first = value, two.best = id[s];
      } else if (value < two.second) {
        two.second = value;
      }
    }
    two.is_known = two.first <= beyond_[i];
    two.second = std::min(two.second, beyond_[i]);
    return two;
  }

 private:
  static constexpr std::size_t kMost = 16;   // centers kept for a row
  static constexpr std::size_t kNear = 64;   // neighbors it looks at first
  static constexpr std::size_t kFew = 4096;  // centers, up to which it looks at all from the first
  static constexpr std::size_t kBlock = 24;

  struct Near {
    const Neighbors& graph;
    Closest best;
    Nearest nearest;
    std::vector<Label> seen;
  };

  struct Scratch {
    std::vector<T> dots;
    std::vector<double> low, sample;  // what each center costs at least
    Closest best;
  };

  double weight(std::size_t i) const { return weights_ ? weights_[i] : 1.0; }
  double square(std::size_t i, std::size_t j) const { return kernel_.squared_distance(x_[i], centers_[j], x_.d); }

  // From the neighbors of one center to those of the nearest among them, until the nearest is the center itself.
  std::uint64_t look_near(std::size_t i, Label from, Near& s) {
    s.nearest = {}, s.seen.clear();
    for (Label around = kUnassigned; around != from; from = s.nearest.label) {
      around = from;
      look_around(i, static_cast<std::size_t>(around), s);
    }
    keep(i, s.best, s.best.farthest() * weight(i), [&](double square, std::size_t) { return square * weight(i); });
    return s.seen.size();
  }

  void look_around(std::size_t i, std::size_t home, Near& s) {
    const double root = std::sqrt(square(i, home));
    for (std::size_t e = 0; e < s.graph.width; ++e) {
      const double apart = s.graph.distances(home)[e] - root;     // at least, by the triangle inequality
      if (apart > 0 && apart * apart > s.best.farthest()) break;  // by distance: nobody further is nearer
      const Label j = s.graph.ids(home)[e];
      if (std::find(s.seen.begin(), s.seen.end(), j) != s.seen.end()) continue;
      const double found = square(i, static_cast<std::size_t>(j));
      s.seen.push_back(j);
      s.best.offer(found, j), s.nearest.offer(j, found, kUnassigned);
    }
  }

  std::uint64_t look_at_all(Row i, const T* dots, std::span<const double> prices, Scratch& s) {
    const Gate<T> gate = all_.gate(x_[i], x_.d, T(0));
    s.low.resize(centers_.n);
    for (std::size_t j = 0; j < centers_.n; ++j) {
      const auto least = static_cast<double>(score(gate, dots, j) + gate.square) * (1 - 0x1p-19);
      s.low[j] = std::max(0.0, least) * weight(i) + prices[j];
    }
    const double few = likely(s);
    std::uint64_t measured = 0;
    for (const bool rest : {false, true}) {  // those of low bounds first: they let most of the others go
      for (std::size_t j = 0; j < centers_.n; ++j) {
        if ((s.low[j] > few) != rest || s.low[j] > s.best.farthest()) continue;
        s.best.offer(square(i, j) * weight(i) + prices[j], static_cast<Label>(j));
        ++measured;
      }
    }
    keep(i, s.best, s.best.farthest(), [&](double value, std::size_t j) { return value - prices[j]; });
    return measured;
  }

  // A bound that about twice as many as are kept are below, from every eighth of them.
  double likely(Scratch& s) const {
    s.sample.clear();
    for (std::size_t j = 0; j < s.low.size(); j += 8) s.sample.push_back(s.low[j]);
    const auto rank = s.sample.begin() + static_cast<std::ptrdiff_t>(std::min(s.sample.size() - 1, kept_ / 4));
    std::nth_element(s.sample.begin(), rank, s.sample.end());
    return *rank;
  }

  // What was found, by cost: cost_of(value, j) of each. All others are at `beyond` or above.
  template <class F>
  void keep(std::size_t i, Closest& best, double beyond, F&& cost_of) {
    double* cost = &cost_[i * kept_];
    Label* id = &id_[i * kept_];
    beyond_[i] = kept_ < centers_.n ? beyond : std::numeric_limits<double>::infinity();
    best.take([&](std::size_t s, double value, Label j) {
      const double own = cost_of(value, static_cast<std::size_t>(j));
      for (; s > 0 && cost[s - 1] > own; --s) cost[s] = cost[s - 1], id[s] = id[s - 1];
      cost[s] = own, id[s] = j;
    });
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  Rows<const T> centers_;
  std::size_t kept_;
  Large<double> cost_;  // n x kept, ascending in each row
  Large<Label> id_;     // whose it is
  Large<double> beyond_;
  Packed<T> all_;
};

}  // namespace k2
