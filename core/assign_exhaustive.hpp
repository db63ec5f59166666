// Lloyd's assignment: every row looks at every center.
#pragma once

#include "panels.hpp"

namespace k2 {

template <class T>
class Exhaustive {
 public:
  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    panels_.pack({centers.value.data(), centers.k, centers.d}, nullptr, pool);
    Assigned out;
    out.moved = label_nearest(x, panels_, labels, pool);
    out.ops.distances = static_cast<std::uint64_t>(x.n) * centers.k;
    return out;
  }
  void forget(Row) {}

 private:
  Panels<T> panels_;
};

}  // namespace k2
