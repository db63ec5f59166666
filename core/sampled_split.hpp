// Projective Split of many rows: the hyperplane is found on a sample of them, and cuts them all. If more splits are
// wanted, those of the halves, and of their halves, are found along with it, as greedily as clusters are divided
// (Algorithm 2), and one pass over the rows does all of them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "groups.hpp"
#include "half.hpp"
#include "parallel.hpp"
#include "plane_tree.hpp"
#include "random.hpp"
#include "split.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class SampledSplit {
 public:
  using Result = typename ProjectiveSplit<T>::Result;

  SampledSplit(Rows<const T> x, const double* weights, bool sampled)
      : x_(x), weights_(weights), sampled_(sampled), split_(x, weights), tree_(x, weights) {}

  // As ProjectiveSplit. `most`: how many splits may be found at once.
  Result operator()(std::span<Row> rows, const Half& whole, int iterations, std::size_t most, Random random,
                    Pool& pool) {
    if (!sampled_ || rows.size() < kMany) return split_(rows, whole, iterations, random, pool);
    const std::size_t planes = std::min({most, PlaneTree<T>::kMost, rows.size() / kRows});
    Ops ops;
    if (grow(rows, planes, iterations, random, ops)) {
      tree_(planes_, rows, whole.mean, pool);
      ops.products += rows.size() * planes_.size(), ops.additions += rows.size(), ops.distances += rows.size();
      groups_.sort(tree_.leaf(), planes_.size() + 1, rows.size(), pool);
      if (auto all = result(0, 0, whole.mean)) {
        order_.resize(rows.size());
        pool.for_chunks(rows.size(), kChunk, [&](std::size_t a, std::size_t b, int) {
          for (std::size_t i = a; i < b; ++i) order_[i] = rows[groups_.order()[i]];
        });
        std::copy(order_.begin(), order_.end(), rows.begin());
        all->ops = ops;
        return std::move(*all);
      }
    }
    Result out = split_(rows, whole, iterations, random, pool);  // the sample does not show how to cut them
    out.ops += ops;
    return out;
  }

 private:
  static constexpr std::size_t kMany = 512;                          // rows, from which on a sample is taken
  static constexpr std::size_t kRows = 256;                          // at least, for each plane
  static constexpr std::size_t kSample = 1024, kLargeSample = 4096;  // for one plane, for several
  static constexpr std::size_t kChunk = 1 << 14;

  // A part of the sample.
  struct Branch {
    std::size_t begin, end;
    Half half;
    std::size_t* from;  // what leads here: of a plane
  };

  // The planes: of the part of the sample with the highest energy, again and again. False: there are none.
  bool grow(std::span<const Row> rows, std::size_t most, int iterations, Random& random, Ops& ops) {
    const std::size_t m = std::min(most > 1 ? kLargeSample : kSample, rows.size() / 4);
    sample_.resize(m);
    for (std::size_t i = 0; i < m; ++i) sample_[i] = rows[i * rows.size() / m];
    std::vector<Branch> branches;
    branches.push_back({0, m, half_of(x_, weights_, m, [&](std::size_t i) { return sample_[i]; }), nullptr});
    planes_.clear(), planes_.reserve(most);
    Pool alone(1);
    while (planes_.size() < most) {
      const auto b = std::max_element(branches.begin(), branches.end(),
                                      [](auto& p, auto& q) { return p.half.energy < q.half.energy; });
      if (!(b->half.energy > 0)) break;
      Result halves = split_(std::span(sample_).subspan(b->begin, b->end - b->begin), b->half, iterations,
                             Random(random.bits()), alone);
      ops += halves.ops;
      b->half.energy = 0.0;  // unless it is cut, it is not tried again
      if (halves.left == 0) continue;
      if (b->from) *b->from = planes_.size();
      planes_.push_back(split_.plane());
      const std::size_t middle = b->begin + halves.left, end = b->end;
      *b = {b->begin, middle, std::move(halves.a), &planes_.back().next[0]};
      branches.push_back({middle, end, std::move(halves.b), &planes_.back().next[1]});
    }
    // Leaves are named from one side to the other, so that those of a plane come together.
    std::sort(branches.begin(), branches.end(), [](auto& p, auto& q) { return p.begin < q.begin; });
    for (std::size_t l = 0; l < branches.size(); ++l) {
      if (branches[l].from) *branches[l].from = Plane::kLeaf + l;
    }
    return !planes_.empty();
  }

  // What plane p did, whose leaves are those from `first` on; nothing, if hardly anything is on one of its sides.
  std::unique_ptr<Result> result(std::size_t p, std::size_t first, const std::vector<double>& origin) const {
    const std::size_t middle = first + leaves(planes_[p].next[0]), end = middle + leaves(planes_[p].next[1]);
    auto out = std::make_unique<Result>();
    for (std::size_t l = first; l < middle; ++l) out->left += groups_.members(l).size();
    out->a = tree_.half(first, middle, origin), out->b = tree_.half(middle, end, origin);
    if (!(out->a.weight > kLight * out->b.weight && out->b.weight > kLight * out->a.weight)) return nullptr;
    if (planes_[p].next[0] < Plane::kLeaf) out->inside[0] = result(planes_[p].next[0], first, origin);
    if (planes_[p].next[1] < Plane::kLeaf) out->inside[1] = result(planes_[p].next[1], middle, origin);
    return out;
  }
  std::size_t leaves(std::size_t p) const {
    return p < Plane::kLeaf ? leaves(planes_[p].next[0]) + leaves(planes_[p].next[1]) : 1;
  }

  Rows<const T> x_;
  const double* weights_;
  bool sampled_;
  ProjectiveSplit<T> split_;
  PlaneTree<T> tree_;
  Groups groups_;
  std::vector<Plane> planes_;
  std::vector<Row> sample_, order_;
};

}  // namespace k2
