// Delete and split: a cluster that is cheap to give up for one half of a cluster that is worth cutting.
//
// Iterations move centers, but hardly ever from where there are too many to where there are too few. Joining clusters
// i and j raises the energy by W_i W_j / (W_i + W_j) ||m_i - m_j||^2; cutting one lowers it by what Projective Split
// finds. Both are exact, and no cluster has part in two swaps: so the energy falls by the difference.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "groups.hpp"
#include "half.hpp"
#include "neighbors.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "sampled_split.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class ClusterSwaps {
 public:
  ClusterSwaps(Rows<const T> x, const double* weights, std::size_t k, std::uint64_t seed)
      : x_(x), weights_(weights), k_(k), seed_(seed), order_(x.n), cuts_(k), gain_(k), cost_(k), with_(k) {}

  // Changes the labels. Returns the share of the energy that this saves: 0 if there is no swap.
  double operator()(std::span<Label> labels, Pool& pool) {
    if (k_ < 3) return 0.0;
    Groups groups;
    groups.sort(labels, k_, x_.n, pool);
    cut_all(groups, pool);
    find_cheapest_joins(pool);
    std::vector<std::size_t> cheap(k_), gainful(k_);
    std::iota(cheap.begin(), cheap.end(), 0), std::iota(gainful.begin(), gainful.end(), 0);
    std::stable_sort(cheap.begin(), cheap.end(), [&](auto a, auto b) { return cost_[a] < cost_[b]; });
    std::stable_sort(gainful.begin(), gainful.end(), [&](auto a, auto b) { return gain_[a] > gain_[b]; });
    std::vector<char> used(k_, 0);
    double saved = 0.0, energy = 0.0;
    auto next = gainful.begin();
    for (const std::size_t j : cheap) {
      const std::size_t to = with_[j];
      if (used[j] || used[to] || to == j) continue;
      while (next != gainful.end() && used[*next]) ++next;
      const auto cut = std::find_if(next, gainful.end(), [&](auto c) { return !used[c] && c != j && c != to; });
      if (cut == gainful.end() || gain_[*cut] <= cost_[j]) {
        if (cut == next) break;  // no other is cheaper, and none gains more
        continue;
      }
      for (const Row i : groups.members(j)) labels[i] = static_cast<Label>(to);
      for (const Row i : second_half(*cut)) labels[i] = static_cast<Label>(j);
      used[j] = used[to] = used[*cut] = 1;
      saved += gain_[*cut] - cost_[j];
    }
    for (const Cut& c : cuts_) energy += c.whole.energy;
    return saved > 0 ? saved / energy : 0.0;
  }

  const Ops& ops() const { return ops_; }

 private:
  static constexpr std::size_t kNear = 8;  // centers, among which the one to join with is looked for
  static constexpr int kIterations = 2;    // of Projective Split

  struct Cut {
    std::size_t begin = 0, middle = 0, end = 0;  // the halves in order_
    Half whole;
  };
  std::span<const Row> second_half(std::size_t j) const {
    return {order_.data() + cuts_[j].middle, cuts_[j].end - cuts_[j].middle};
  }

  void cut_all(const Groups& groups, Pool& pool) {
    for (std::size_t j = 0, begin = 0; j < k_; begin = cuts_[j++].end) {
      const auto members = groups.members(j);
      cuts_[j].begin = begin, cuts_[j].end = begin + members.size();
      std::copy(members.begin(), members.end(), order_.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    std::vector<SampledSplit<T>> splitters;
    for (int w = 0; w < pool.size(); ++w) splitters.emplace_back(x_, weights_, true);
    ops_ += pool.tally<Ops>(k_, 1, [&](std::size_t j, std::size_t, int worker) {
      Cut& c = cuts_[j];
      const std::span<Row> rows(order_.data() + c.begin, c.end - c.begin);
      c.whole = half_of(x_, weights_, rows.size(), [&](std::size_t i) { return rows[i]; });
      Pool alone(1, worker == 0 ? pool.poll() : Pool::Poll());
      const auto found =
          splitters[static_cast<std::size_t>(worker)](rows, c.whole, kIterations, 1, Random(seed_, j), alone);
      c.middle = c.begin + found.left;
      gain_[j] = found.left > 0 ? c.whole.energy - found.a.energy - found.b.energy : 0.0;
      Ops ops = found.ops;
      ops.additions += rows.size(), ops.distances += rows.size();
      return ops;
    });
  }

  void find_cheapest_joins(Pool& pool) {
    std::vector<T> means;
    for (const Cut& c : cuts_) means.insert(means.end(), c.whole.mean.begin(), c.whole.mean.end());
    Neighbors graph;
    const std::size_t width = std::min(k_, kNear + 1);
    NeighborSearch<T>()(Centers<T>(means.data(), k_, x_.d), width, Neighbors(), graph, pool);
    ops_.distances += static_cast<std::uint64_t>(k_) * (k_ - 1) / 2;
    for (std::size_t j = 0; j < k_; ++j) {
      cost_[j] = std::numeric_limits<double>::infinity(), with_[j] = j;
      for (std::size_t s = 0; s < graph.width; ++s) {
        const auto i = static_cast<std::size_t>(graph.ids(j)[s]);
        if (i == j) continue;
        const double a = cuts_[i].whole.weight, b = cuts_[j].whole.weight, gap = graph.distances(j)[s];
        const double cost = a + b > 0 ? a * b / (a + b) * gap * gap : 0.0;
        if (cost < cost_[j]) cost_[j] = cost, with_[j] = i;
      }
    }
  }

  Rows<const T> x_;
  const double* weights_;
  std::size_t k_;
  std::uint64_t seed_;
  std::vector<Row> order_;
  std::vector<Cut> cuts_;
  std::vector<double> gain_, cost_;  // of cutting it; of joining it with `with_`
  std::vector<std::size_t> with_;
  Ops ops_;
};

}  // namespace k2
