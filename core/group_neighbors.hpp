// Neighbors of centers, looked for among the centers of the groups near their own (center_groups.hpp): k times some
// hundred products, however many centers there are. How many of the true ones are found, an audit tells.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "center_groups.hpp"
#include "distance.hpp"
#include "neighbors.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class GroupNeighbors {
 public:
  // Whether the groups that are asked have many more centers than are wanted, and far fewer than there are.
  static bool serves(std::size_t k, std::size_t width) { return k > kAsked * kSize && 8 * width <= kAsked * kSize; }

  // Only the ids, in no order. Products alone rank them; nothing is fused, so they are the same on every CPU. Returns
  // how many were made.
  std::uint64_t operator()(const Centers<T>& centers, std::size_t width, Neighbors& out, Pool& pool) {
    all_.pack({centers.value.data(), centers.k, centers.d}, nullptr, pool);
    const Ops ops = groups_.form(all_, pool);
    out.width = width;
    out.id.resize(centers.k * width), out.distance.clear();
    scratch_.resize(static_cast<std::size_t>(pool.size()));
    return ops.products + ops.distances +
           pool.tally<std::uint64_t>(groups_.size(), 1, [&](std::size_t g, std::size_t, int worker) {
             return look(centers, g, scratch_[static_cast<std::size_t>(worker)], out);
           });
  }

 private:
  static constexpr std::size_t kSize = CenterGroups<T>::kSize, kAsked = 16;

  struct Scratch {
    std::vector<T> dots, scores;
    std::vector<std::int32_t> places;
  };

  // The centers of group g, with those of the groups near it.
  std::uint64_t look(const Centers<T>& centers, std::size_t g, Scratch& s, Neighbors& out) const {
    const auto near = groups_.near(g).first(std::min(kAsked, groups_.near(g).size()));
    const Panels<T>& own = groups_.members(g);
    const std::size_t asked = near.size() * kSize;
    grow(s.dots, kSize * kSize), grow(s.places, asked);
    s.scores.assign(own.count() * asked, std::numeric_limits<T>::infinity());
    const T* rows[kSize];
    for (std::size_t c = 0; c < own.count(); ++c) rows[c] = centers[static_cast<std::size_t>(own.id(c))];
    std::uint64_t products = 0;
    for (std::size_t e = 0; e < near.size(); ++e) {
      const Panels<T>& members = groups_.members(static_cast<std::size_t>(near[e]));
      const std::size_t padded = members.panels() * members.width();
      members.heads(rows, own.count(), s.dots.data(), kSize);
      for (std::size_t c = 0; c < own.count(); ++c) {
        kernel_.scores(s.dots.data() + c * kSize, members.base(), padded, s.scores.data() + c * asked + e * kSize);
      }
      products += own.count() * members.count();
    }
    for (std::size_t c = 0; c < own.count(); ++c) {
      const Label l = own.id(c);
      Label* ids = out.id.data() + static_cast<std::size_t>(l) * out.width;
      kernel_.few(s.scores.data() + c * asked, asked, out.width, s.places.data());
      for (std::size_t m = 0; m < out.width; ++m) {
        const auto place = static_cast<std::size_t>(s.places[m]);
        ids[m] = groups_.members(static_cast<std::size_t>(near[place / kSize])).id(place % kSize);
      }
      if (std::find(ids, ids + out.width, l) == ids + out.width) ids[0] = l;  // twins of it crowded it out
    }
    return products;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Panels<T> all_;
  CenterGroups<T> groups_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
