// AKM's assignment: the nearest of the centers that a forest of kd-trees finds within a budget (Philbin et al. 2007).
#pragma once

#include "contest.hpp"
#include "kdtree.hpp"
#include "parallel.hpp"

namespace k2 {

struct ForestOptions {
  std::size_t checks;  // distances a row may measure
  std::size_t trees;
  bool keep_previous;  // the row's center is a candidate; the original has no such rule, so energy may rise
  std::uint64_t seed;
};

template <class T>
class AssignKdTree {
 public:
  explicit AssignKdTree(const ForestOptions& options) : options_(options) {}

  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    using Scratch = typename KdForest<T>::Scratch;
    forest_.build({centers.value.data(), centers.k, centers.d}, options_.trees, Random(options_.seed, built_++).bits(),
                  pool);
    std::vector<Scratch> scratch(static_cast<std::size_t>(pool.size()), Scratch(centers.k));
    return pool.tally<Assigned>(x.n, 64, [&](std::size_t a, std::size_t b, int worker) {
      Assigned out;
      for (std::size_t i = a; i < b; ++i) {
        Contest<T> contest(centers, x[i], labels[i]);
        const auto enter = [&](Label j) {
          contest.enter(j);
          ++out.ops.distances;
        };
        const Label known = options_.keep_previous ? labels[i] : kUnassigned;
        if (known != kUnassigned) enter(known);
        forest_.search(x[i], options_.checks - (known != kUnassigned), known, scratch[static_cast<std::size_t>(worker)],
                       enter);
        out.moved += labels[i] != contest.best();
        labels[i] = contest.best();
      }
      return out;
    });
  }
  void forget(Row) {}

 private:
  ForestOptions options_;
  std::uint64_t built_ = 0;
  KdForest<T> forest_;
};

}  // namespace k2
