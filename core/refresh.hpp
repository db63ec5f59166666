// Neighbors of centers that have moved a little since theirs were found: among those they had, and the nearest of
// these. Nearly always the true ones, for k times a few hundred distances in place of k^2 / 2 products.
#pragma once

#include <algorithm>
#include <vector>

#include "distance.hpp"
#include "neighbors.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class NeighborRefresh {
 public:
  // Only the ids. Returns how many distances were measured.
  std::uint64_t operator()(const Centers<T>& centers, const Neighbors& before, Neighbors& out, Pool& pool) {
    out.width = before.width;
    out.id.resize(before.id.size()), out.distance.clear();
    scratch_.resize(static_cast<std::size_t>(pool.size()));
    for (Scratch& s : scratch_) s.seen.assign(centers.k, kUnassigned);
    return pool.tally<std::uint64_t>(centers.k, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      std::uint64_t distances = 0;
      for (std::size_t l = a; l < b; ++l) distances += find(centers, before, l, s, out.id.data() + l * out.width);
      return distances;
    });
  }

  // The share of the true neighbors that are in the graph, for some of the centers: it measures so many of them with
  // all.
  static std::size_t audited(std::size_t k) { return (k + every(k) - 1) / every(k); }
  double recall(const Centers<T>& centers, const Neighbors& graph, Pool& pool) const {
    const std::size_t audited = this->audited(centers.k);
    const auto found = pool.tally<std::size_t>(audited, 1, [&](std::size_t a, std::size_t, int) {
      const std::size_t l = a * every(centers.k);
      auto square = [&](std::size_t j) { return kernel_.squared_distance(centers[l], centers[j], centers.d); };
      std::vector<double> squares(centers.k);
      for (std::size_t j = 0; j < centers.k; ++j) squares[j] = square(j);
      const auto last = squares.begin() + static_cast<std::ptrdiff_t>(graph.width - 1);
      std::nth_element(squares.begin(), last, squares.end());
      const auto ids = graph.ids(l);
      return static_cast<std::size_t>(
          std::count_if(ids.begin(), ids.end(), [&](Label j) { return square(static_cast<std::size_t>(j)) <= *last; }));
    });
    return static_cast<double>(found) / static_cast<double>(audited * graph.width);
  }

 private:
  static constexpr std::size_t kBlock = 24, kNearest = 8, kTheirs = 64, kAudited = 64;

  static std::size_t every(std::size_t k) { return (k + kAudited - 1) / kAudited; }

  struct Scratch {
    std::vector<Label> seen;  // by which center each was measured last
    std::vector<std::pair<double, Label>> measured;
  };

  std::uint64_t find(const Centers<T>& centers, const Neighbors& before, std::size_t l, Scratch& s, Label* out) const {
    s.measured.clear();
    auto measure = [&](std::span<const Label> ids) {
      for (const Label j : ids) {
        Label& seen = s.seen[static_cast<std::size_t>(j)];
        if (seen == static_cast<Label>(l)) continue;
        seen = static_cast<Label>(l);
        const T* c = centers[static_cast<std::size_t>(j)];
        const bool self = j == static_cast<Label>(l);
        s.measured.emplace_back(self ? -1.0 : kernel_.squared_distance(centers[l], c, centers.d), j);
      }
    };
    const auto own = before.ids(l);
    measure(own);
    for (const Label j : own.first(std::min(kNearest, own.size()))) {
      const auto theirs = before.ids(static_cast<std::size_t>(j));
      measure(theirs.first(std::min(kTheirs, theirs.size())));
    }
    const auto last = s.measured.begin() + static_cast<std::ptrdiff_t>(before.width);
    std::partial_sort(s.measured.begin(), last, s.measured.end());
    std::transform(s.measured.begin(), last, out, [](const auto& m) { return m.second; });
    return s.measured.size() - 1;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::vector<Scratch> scratch_;
};

}  // namespace k2
