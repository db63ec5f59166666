// A cluster that lost all its rows gets the row that costs most, so that k clusters asked for are k clusters returned.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

// The rows, from the one that costs most on; of equal ones the first comes first. Few are wanted: of each part of the
// rows only the costliest is kept, until that is taken.
template <class T>
class Costliest {
 public:
  Costliest(Rows<const T> x, const Centers<T>& centers, std::span<const Label> labels, Pool& pool)
      : x_(x), centers_(centers), labels_(labels), parts_((x.n + kPart - 1) / kPart) {
    pool.for_chunks(x.n, kPart, [&](std::size_t a, std::size_t b, int) {
      Part& part = parts_[a / kPart];
      part = {cost(a), a, b};
      for (std::size_t i = a + 1; i < b; ++i) part.first = std::max(part.first, cost(i));
    });
    std::make_heap(parts_.begin(), parts_.end());
  }

  bool empty() const { return parts_.empty(); }
  Row take() {
    std::pop_heap(parts_.begin(), parts_.end());
    Part& part = parts_.back();
    const Row row = part.first.row;
    if (part.heap.empty()) {  // the first of it
      for (std::size_t i = part.begin; i < part.end; ++i) part.heap.push_back(cost(i));
      std::make_heap(part.heap.begin(), part.heap.end());
    }
    std::pop_heap(part.heap.begin(), part.heap.end());
    part.heap.pop_back();
    if (part.heap.empty()) {
      parts_.pop_back();
    } else {
      part.first = part.heap.front();
      std::push_heap(parts_.begin(), parts_.end());
    }
    return row;
  }

 private:
  static constexpr std::size_t kPart = 1 << 14;

  struct Costly {
    double cost;
    Row row;
    bool operator<(const Costly& o) const { return cost != o.cost ? cost < o.cost : row > o.row; }
  };
  struct Part {
    Costly first;  // of those not taken
    std::size_t begin, end;
    std::vector<Costly> heap = {};
    bool operator<(const Part& o) const { return first < o.first; }
  };

  Costly cost(std::size_t i) const {
    const T* own = centers_[static_cast<std::size_t>(labels_[i])];
    return {kernels<T>().squared_distance(x_[i], own, x_.d), static_cast<Row>(i)};
  }

  Rows<const T> x_;
  const Centers<T>& centers_;
  std::span<const Label> labels_;  // of a part they do not change before the first of it is taken
  std::vector<Part> parts_;
};

// Returns the rows it gave a new label. Fewer than the empty clusters: there are no more distinct rows.
template <class T>
std::vector<Row> refill_empty(Rows<const T> x, const Centers<T>& centers, std::span<const std::int64_t> members,
                              std::span<Label> labels, Pool& pool) {
  Costliest<T> costliest(x, centers, labels, pool);
  Groups groups;
  groups.sort(labels, centers.k, x.n, pool);
  const auto equal = [&](Row a, Row b) { return std::equal(x[a], x[a] + x.d, x[b]); };

  // A row takes its twins along in the next assignment. So it may leave only if its cluster has others, and twins of a
  // row that was given already are not given again.
  std::vector<std::int64_t> left(members.begin(), members.end());
  std::vector<Row> given;
  for (std::size_t j = 0; j < members.size(); ++j) {
    if (members[j] != 0) continue;
    for (bool found = false; !found;) {
      if (costliest.empty()) return given;
      const Row row = costliest.take();
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
