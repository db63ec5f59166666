// A cluster that lost all its rows gets the row that costs most, so that k clusters asked for are k clusters returned.
#pragma once

#include <algorithm>
#include <vector>

#include "groups.hpp"
#include "parallel.hpp"
#include "squares.hpp"
#include "types.hpp"

namespace k2 {

// Returns the rows it gave a new label. Fewer than the empty clusters: there are no more distinct rows.
template <class T>
std::vector<Row> refill_empty(Rows<const T> x, const Centers<T>& centers, std::span<const std::int64_t> members,
                              std::span<Label> labels, Pool& pool) {
  const auto cost = squares_of<T>(x, {centers.value.data(), centers.k, centers.d}, labels.data(), pool);
  std::vector<Row> heap(x.n);
  for (std::size_t i = 0; i < x.n; ++i) heap[i] = static_cast<Row>(i);
  const auto cheaper = [&](Row a, Row b) { return cost[a] != cost[b] ? cost[a] < cost[b] : a > b; };
  std::make_heap(heap.begin(), heap.end(), cheaper);
  Groups groups;
  groups.sort(labels, centers.k, x.n);
  const auto equal = [&](Row a, Row b) { return std::equal(x[a], x[a] + x.d, x[b]); };

  // A row takes its twins along in the next assignment. So it may leave only if its cluster has others, and twins of a
  // row that was given already are not given again.
  std::vector<std::int64_t> left(members.begin(), members.end());
  std::vector<Row> given;
  for (std::size_t j = 0; j < members.size(); ++j) {
    if (members[j] != 0) continue;
    for (bool found = false; !found; heap.pop_back()) {
      if (heap.empty()) return given;
      std::pop_heap(heap.begin(), heap.end(), cheaper);
      const Row row = heap.back();
      const auto from = static_cast<std::size_t>(labels[row]);
      if (left[from] <= 1 || std::any_of(given.begin(), given.end(), [&](Row g) { return equal(g, row); })) continue;
      const auto mates = groups.members(from);
      const auto twins = std::count_if(mates.begin(), mates.end(), [&](Row m) { return equal(m, row); });
      if (twins >= left[from]) continue;
      left[from] -= twins;
      labels[row] = static_cast<Label>(j);
      given.push_back(row);
      found = true;
    }
  }
  return given;
}

}  // namespace k2
