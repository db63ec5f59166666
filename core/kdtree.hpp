// Randomised kd-trees over the centers, searched together within a budget of checks (AKM: Philbin et al. 2007).
//
// As in the authors' code: a node is cut at the mean of a column drawn from the five of highest variance, both taken
// from 128 of its points; a leaf has at most 14 points; all trees share one queue of the branches not taken, the
// most promising first. Unlike there, the budget holds also while the trees are first descended, and each tree
// shuffles its points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "random.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class KdForest {
 public:
  static constexpr std::size_t kLeaf = 14, kColumns = 5, kSample = 128;

  void build(Rows<const T> points, std::size_t trees, std::uint64_t seed, Pool& pool) {
    points_ = points;
    trees_.resize(trees);
    pool.for_chunks(trees, 1, [&](std::size_t t, std::size_t, int) { grow(trees_[t], Random(seed, t)); });
  }

  // What one search needs; keep one for each thread.
  class Scratch {
   public:
    explicit Scratch(std::size_t points) : last_(points, 0) {}

   private:
    friend class KdForest;
    struct Branch {
      T gap;  // sum of the squared distances to the cuts on the way: small means promising
      std::uint32_t tree, node;
      bool operator<(const Branch& o) const { return gap > o.gap; }  // std heaps have the largest on top
    };
    bool first_sight(Label j) {
      const bool fresh = last_[static_cast<std::size_t>(j)] != search_;
      last_[static_cast<std::size_t>(j)] = search_;
      return fresh;
    }
    std::vector<std::uint64_t> last_;  // the search each point was last met in
    std::uint64_t search_ = 0;
    std::vector<Branch> queue_;
  };

  // visit(j) for at most `checks` different points, best bins first. `known` (or kUnassigned) is not visited.
  template <class Visit>
  void search(const T* q, std::size_t checks, Label known, Scratch& s, Visit&& visit) const {
    ++s.search_;
    s.queue_.clear();
    if (known != kUnassigned) s.first_sight(known);
    for (std::uint32_t t = 0; t < trees_.size() && checks > 0; ++t) descend(q, {T(0), t, 0}, checks, s, visit);
    while (checks > 0 && !s.queue_.empty()) {
      std::pop_heap(s.queue_.begin(), s.queue_.end());
      const typename Scratch::Branch next = s.queue_.back();
      s.queue_.pop_back();
      descend(q, next, checks, s, visit);
    }
  }

 private:
  static constexpr std::uint32_t kIsLeaf = ~std::uint32_t{0};

  struct Node {
    T cut;                 // left: not above it
    std::uint32_t column;  // or kIsLeaf
    std::uint32_t a, b;    // children; of a leaf: its points are order[a, b)
  };
  struct Tree {
    std::vector<Node> nodes;
    std::vector<Label> order;
  };

  template <class Visit>
  void descend(const T* q, typename Scratch::Branch from, std::size_t& checks, Scratch& s, Visit&& visit) const {
    const Tree& tree = trees_[from.tree];
    const Node* node = &tree.nodes[from.node];
    while (node->column != kIsLeaf) {
      const T gap = q[node->column] - node->cut;
      s.queue_.push_back({from.gap + gap * gap, from.tree, gap > 0 ? node->a : node->b});
      std::push_heap(s.queue_.begin(), s.queue_.end());
      node = &tree.nodes[gap > 0 ? node->b : node->a];
    }
    for (std::uint32_t i = node->a; i < node->b && checks > 0; ++i) {
      if (!s.first_sight(tree.order[i])) continue;
      visit(tree.order[i]);
      --checks;
    }
  }

  void grow(Tree& tree, Random random) const {
    const auto count = static_cast<std::uint32_t>(points_.n);
    tree.order.resize(count);
    for (std::uint32_t j = 0; j < count; ++j) tree.order[j] = static_cast<Label>(j);
    // Shuffled, or a small budget would always be spent on the lowest indices of a leaf.
    for (std::uint32_t j = count; j > 1; --j) std::swap(tree.order[j - 1], tree.order[random.below(j)]);
    tree.nodes.assign(1, {T(0), kIsLeaf, 0, count});
    std::vector<double> mean(points_.d), variance(points_.d);
    for (std::size_t at = 0; at < tree.nodes.size(); ++at) {  // children are appended, so they have their turn
      const std::uint32_t a = tree.nodes[at].a, b = tree.nodes[at].b;
      if (b - a <= kLeaf) continue;
      const auto first = tree.order.begin() + a, last = tree.order.begin() + b;
      measure(&*first, std::min<std::size_t>(kSample, b - a), mean, variance);
      const std::size_t column = draw_column(variance, random);
      const T cut = static_cast<T>(mean[column]);
      auto middle = std::stable_partition(first, last,
                                          [&](Label j) { return points_[static_cast<std::size_t>(j)][column] <= cut; });
      if (middle == first || middle == last) middle = first + (b - a) / 2;  // equal points: any cut will do
      const auto split = static_cast<std::uint32_t>(middle - tree.order.begin());
      const auto left = static_cast<std::uint32_t>(tree.nodes.size());
      tree.nodes.push_back({T(0), kIsLeaf, a, split});
      tree.nodes.push_back({T(0), kIsLeaf, split, b});
      tree.nodes[at] = {cut, static_cast<std::uint32_t>(column), left, left + 1};
    }
  }

  void measure(const Label* ids, std::size_t count, std::vector<double>& mean, std::vector<double>& variance) const {
    std::fill(mean.begin(), mean.end(), 0.0);
    std::fill(variance.begin(), variance.end(), 0.0);
    const double n = static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const T* c = points_[static_cast<std::size_t>(ids[i])];
      for (std::size_t e = 0; e < points_.d; ++e) mean[e] += static_cast<double>(c[e]);
    }
    for (double& m : mean) m /= n;
    for (std::size_t i = 0; i < count; ++i) {
      const T* c = points_[static_cast<std::size_t>(ids[i])];
      for (std::size_t e = 0; e < points_.d; ++e) {
        const double z = static_cast<double>(c[e]) - mean[e];
        variance[e] += z * z;
      }
    }
  }

  static std::size_t draw_column(const std::vector<double>& variance, Random& random) {
    std::size_t widest[kColumns];
    std::size_t found = 0;
    for (std::size_t e = 0; e < variance.size(); ++e) {
      std::size_t p = found < kColumns ? found++ : kColumns - 1;
      if (p == kColumns - 1 && found == kColumns && e >= kColumns && variance[e] <= variance[widest[p]]) continue;
      for (; p > 0 && variance[widest[p - 1]] < variance[e]; --p) widest[p] = widest[p - 1];
      widest[p] = e;
    }
    return widest[random.below(found)];
  }

  Rows<const T> points_;
  std::vector<Tree> trees_;
};

}  // namespace k2
