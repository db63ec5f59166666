// A cluster that lost all its rows gets the row that costs most, so that k clusters asked for are k clusters returned.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "large.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

// The rows, from the one that costs most on; of equal ones the first comes first. A heap for each part of them, so that
// they are made at once, and a heap of these heaps.
class Costliest {
 public:
  template <class T>
  Costliest(Rows<const T> x, const Centers<T>& centers, std::span<const Label> labels, Pool& pool)
      : rows_(x.n), parts_((x.n + kPart - 1) / kPart) {
    pool.for_chunks(x.n, kPart, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t i = a; i < b; ++i) {
        const T* own = centers[static_cast<std::size_t>(labels[i])];
        rows_[i] = {kernels<T>().squared_distance(x[i], own, x.d), static_cast<Row>(i)};
      }
      parts_[a / kPart] = {rows_.data() + a, b - a};
      std::make_heap(rows_.data() + a, rows_.data() + b);
    });
    std::make_heap(parts_.begin(), parts_.end(), behind);
  }

  bool empty() const { return parts_.empty(); }
  Row take() {
    std::pop_heap(parts_.begin(), parts_.end(), behind);
    std::span<Costly>& part = parts_.back();
    std::pop_heap(part.begin(), part.end());
    const Row row = part.back().row;
    part = part.first(part.size() - 1);
    part.empty() ? parts_.pop_back() : std::push_heap(parts_.begin(), parts_.end(), behind);
    return row;
  }

 private:
  static constexpr std::size_t kPart = 1 << 14;

  struct Costly {
    double cost;
    Row row;
    bool operator<(const Costly& o) const { return cost != o.cost ? cost < o.cost : row > o.row; }
  };
  static bool behind(std::span<const Costly> a, std::span<const Costly> b) { return a[0] < b[0]; }

  Large<Costly> rows_;
  std::vector<std::span<Costly>> parts_;
};

// Returns the rows it gave a new label. Fewer than the empty clusters: there are no more distinct rows.
template <class T>
std::vector<Row> refill_empty(Rows<const T> x, const Centers<T>& centers, std::span<const std::int64_t> members,
                              std::span<Label> labels, Pool& pool) {
  Costliest costliest(x, centers, labels, pool);
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
