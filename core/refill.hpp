// A cluster that lost all its rows gets the row that costs most, so that k clusters asked for are k clusters returned.
#pragma once

#include <algorithm>
#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

// Returns the rows it gave a new label. Fewer than the empty clusters: no other row is away from its center.
template <class T>
std::vector<Row> refill_empty(Rows<const T> x, const Centers<T>& centers, std::span<const std::int64_t> members,
                              std::span<Label> labels, Pool& pool) {
  std::vector<double> cost(x.n);
  pool.for_chunks(x.n, 256, [&](std::size_t a, std::size_t b, int) {
    for (std::size_t i = a; i < b; ++i) {
      cost[i] = kernels<T>().squared_distance(x[i], centers[static_cast<std::size_t>(labels[i])], x.d);
    }
  });
  std::vector<Row> by_cost(x.n);
  for (std::size_t i = 0; i < x.n; ++i) by_cost[i] = static_cast<Row>(i);
  // Each empty cluster passes over at most one row for every cluster, to leave that one its last row.
  const auto wanted = static_cast<std::size_t>(std::count(members.begin(), members.end(), 0));
  const std::size_t enough = std::min(x.n, wanted + centers.k);
  std::partial_sort(by_cost.begin(), by_cost.begin() + static_cast<std::ptrdiff_t>(enough), by_cost.end(),
                    [&](Row a, Row b) { return cost[a] != cost[b] ? cost[a] > cost[b] : a < b; });

  std::vector<std::int64_t> left(members.begin(), members.end());
  std::vector<Row> given;
  auto next = by_cost.begin();
  for (std::size_t j = 0; j < members.size(); ++j) {
    if (members[j] != 0) continue;
    while (next != by_cost.begin() + static_cast<std::ptrdiff_t>(enough) &&
           left[static_cast<std::size_t>(labels[*next])] == 1) {
      ++next;
    }
    if (next == by_cost.begin() + static_cast<std::ptrdiff_t>(enough) || cost[*next] == 0.0) break;
    --left[static_cast<std::size_t>(labels[*next])];
    labels[*next] = static_cast<Label>(j);
    given.push_back(*next++);
  }
  return given;
}

}  // namespace k2
