// The neighbors of all centers, followed while the centers move.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "group_neighbors.hpp"
#include "neighbors.hpp"
#include "parallel.hpp"
#include "refresh.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class CenterGraph {
 public:
  explicit CenterGraph(std::size_t width) : width_(width) {}

  bool empty() const { return graph_.id.empty(); }
  std::span<const Label> ids(std::size_t l) const { return graph_.ids(l); }

  // The centers have moved. Their neighbors stay as they are while an audit finds enough of the true ones among them.
  // A few are then looked for in groups of centers. If those are not enough, or many are wanted, of more than kRefresh
  // centers they are looked for where they were; and if that is not enough either, among all. Returns how many
  // distances were measured.
  std::uint64_t follow(const Centers<T>& centers, double enough, Pool& pool) {
    std::uint64_t distances = 0;
    auto suffices = [&] {
      distances += refresh_.audited(centers.k) * (centers.k - 1);
      return refresh_.recall(centers, graph_, pool) >= enough;
    };
    if (!empty() && suffices()) return distances;
    if (GroupNeighbors<T>::serves(centers.k, width_)) {
      distances += grouped_(centers, width_, graph_, pool);
      if (suffices()) return distances;
    }
    if (!empty() && centers.k > kRefresh) {
      std::swap(graph_, before_);
      distances += refresh_(centers, before_, graph_, pool);
      if (suffices()) return distances;
    }
    std::swap(graph_, before_);
    search_(centers, width_, before_, graph_, pool);
    return distances + static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
  }

  // For each center the one that went elsewhere and now stands beside it: that has its neighbors, and is a neighbor of
  // those that have it.
  void add(std::span<const Label> beside, Pool& pool) {
    if (empty() || width_ < 2) return;
    const auto list = [&](std::size_t l) { return std::span(graph_.id).subspan(l * width_, width_); };
    for (std::size_t l = 0; l < beside.size(); ++l) {
      if (beside[l] == kUnassigned) continue;
      std::copy_n(list(l).begin(), width_, list(static_cast<std::size_t>(beside[l])).begin());
    }
    pool.for_chunks(beside.size(), 256, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t l = a; l < b; ++l) give_place(list(l), beside, static_cast<Label>(l));
    });
  }

  // For a run that is interrupted and taken up again: all that the next neighbors depend on.
  const std::vector<Label>& saved() const { return graph_.id; }
  void restore(std::span<const Label> ids) {
    graph_.width = width_;
    graph_.id.assign(ids.begin(), ids.end());
  }

 private:
  static constexpr std::size_t kRefresh = 4096;

  std::size_t width_;
  Neighbors graph_, before_;
  GroupNeighbors<T> grouped_;
  NeighborSearch<T> search_;
  NeighborRefresh<T> refresh_;
};

}  // namespace k2
