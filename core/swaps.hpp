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
#include "own_lists.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "sampled_split.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class ClusterSwaps {
 public:
  // `costly`: only clusters of so many times the mean energy of one are cut.
  ClusterSwaps(Rows<const T> x, const double* weights, std::size_t k, std::uint64_t seed, double costly = 0.0)
      : x_(x),
        weights_(weights),
        k_(k),
        seed_(seed),
        costly_(costly),
        order_(x.n),
        cuts_(k),
        gain_(k),
        cost_(k),
        with_(k),
        beside_(k, kUnassigned) {}

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
    double saved = 0.0;
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
      beside_[*cut] = static_cast<Label>(j);
      saved += gain_[*cut] - cost_[j];
    }
    return saved > 0 ? saved / energy_ : 0.0;
  }

  // For each cluster that was cut, the one that is now its second half.
  std::span<const Label> beside() const { return beside_; }
  const Ops& ops() const { return ops_; }

 private:
  static constexpr int kIterations = 2;  // of Projective Split

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
    ops_.additions += order_.size(), ops_.distances += order_.size();
    energy_ = pool.tally<double>(k_, 1, [&](std::size_t j, std::size_t, int) {
      const std::span<const Row> rows(order_.data() + cuts_[j].begin, cuts_[j].end - cuts_[j].begin);
      cuts_[j].whole = half_of(x_, weights_, rows.size(), [&](std::size_t i) { return rows[i]; });
      return cuts_[j].whole.energy;
    });
    ops_ += pool.tally<Ops>(k_, 1, [&](std::size_t j, std::size_t, int worker) {
      Cut& c = cuts_[j];
      if (c.whole.energy * static_cast<double>(k_) < costly_ * energy_) return Ops();
      Pool alone(1, worker == 0 ? pool.poll() : Pool::Poll());
      const std::span<Row> rows(order_.data() + c.begin, c.end - c.begin);
      const auto found =
          splitters[static_cast<std::size_t>(worker)](rows, c.whole, kIterations, 1, Random(seed_, j), alone);
      c.middle = c.begin + found.left;
      gain_[j] = found.left > 0 ? c.whole.energy - found.a.energy - found.b.energy : 0.0;
      return found.ops;
    });
  }

  void find_cheapest_joins(Pool& pool) {
    std::vector<T> values;
    for (const Cut& c : cuts_) values.insert(values.end(), c.whole.mean.begin(), c.whole.mean.end());
    const Rows<const T> means{values.data(), k_, x_.d};
    std::vector<Label> own(k_);
    std::iota(own.begin(), own.end(), 0), std::iota(with_.begin(), with_.end(), 0);
    std::fill(cost_.begin(), cost_.end(), std::numeric_limits<double>::infinity());
    Panels<T> panels;
    panels.pack(means, nullptr, pool);
    OwnLists<T> near(1);  // lists of the means for the means
    Groups sorted;
    const auto found = near.look_around({means, panels, own, {k_}}, sorted, pool, [&](std::span<const Row> rows) {
      Assigned out;
      for (const Row j : rows) {
        for (const Label i : std::span(near.of(j), near.length())) {
          out.ops.distances += consider_join(means, j, static_cast<std::size_t>(i));
        }
      }
      return out;
    });
    ops_ += found.ops;
  }

  // Returns how many distances that took.
  std::uint64_t consider_join(Rows<const T> means, std::size_t j, std::size_t with) {
    if (with == j) return 0;
    const double a = cuts_[with].whole.weight, b = cuts_[j].whole.weight;
    const double square = kernel_.squared_distance(means[with], means[j], means.d);
    const double cost = a + b > 0 ? a * b / (a + b) * square : 0.0;
    if (cost < cost_[j]) cost_[j] = cost, with_[j] = with;
    return 1;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  std::size_t k_;
  std::uint64_t seed_;
  double costly_, energy_ = 0.0;
  std::vector<Row> order_;
  std::vector<Cut> cuts_;
  std::vector<double> gain_, cost_;  // of cutting it; of joining it with `with_`
  std::vector<std::size_t> with_;
  std::vector<Label> beside_;
  Ops ops_;
};

}  // namespace k2
