// The neighbors of all centers, followed while the centers move.
#pragma once

#include <span>
#include <utility>

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
  // Of more than kRefresh centers, they are then looked for where they were; if that does not find enough, or of fewer
  // centers, among all. Returns how many distances were measured.
  std::uint64_t follow(const Centers<T>& centers, double enough, Pool& pool) {
    std::uint64_t distances = 0;
    auto suffices = [&] {
      distances += refresh_.audited(centers.k) * (centers.k - 1);
      return refresh_.recall(centers, graph_, pool) >= enough;
    };
    if (!empty()) {
      if (suffices()) return distances;
      if (centers.k > kRefresh) {
        std::swap(graph_, before_);
        distances += refresh_(centers, before_, graph_, pool);
        if (suffices()) return distances;
      }
    }
    std::swap(graph_, before_);
    search_(centers, width_, before_, graph_, pool);
    return distances + static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
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
  NeighborSearch<T> search_;
  NeighborRefresh<T> refresh_;
};

}  // namespace k2
