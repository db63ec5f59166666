// k²-means' assignment (Algorithm 1, lines 5-12): a row looks only at the k_n centers nearest to its own center.
//
// Bounds skip most of those: SlotBounds is the paper's way, RowBound a cheaper one. Both skip only what is strictly
// farther, so the outcome is the nearest center of the list, whatever the bounds.
#pragma once

#include <utility>

#include "assign_exhaustive.hpp"
#include "assign_row_bound.hpp"
#include "assign_slot_bounds.hpp"
#include "groups.hpp"
#include "neighborhood.hpp"

namespace k2 {

template <class T, class Bounds>
class AssignNeighborhood {
 public:
  AssignNeighborhood(std::size_t n, std::size_t k, std::size_t neighbors, int workers)
      : width_(std::min(neighbors, k)), bounds_(n, k, width_, workers) {}

  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    if (labels[0] == kUnassigned) return exhaustive_(x, centers, labels, pool);  // k² needs labels to start

    std::swap(graph_, before_);
    find_neighbors_(centers, width_, before_, graph_, pool);
    groups_.sort(labels, centers.k, kPiece, pool);
    const View<T> view{x, centers, find_neighbors_.panels(), graph_, labels};
    Assigned out = pool.tally<Assigned>(groups_.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const Groups::Piece& piece = groups_.pieces()[p];
      const std::size_t l = piece.cluster;
      const Neighborhood near{graph_.ids(l), graph_.distances(l),
                              before_.id.empty() ? std::span<const Label>{} : before_.ids(l), centers.drift.data()};
      return bounds_(view, near, groups_.rows(piece), worker);
    });
    out.ops.distances += static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
    return out;
  }

  void forget(Row i) { bounds_.forget(i); }

 private:
  std::size_t width_;
  Bounds bounds_;
  Neighbors graph_, before_;
  NeighborSearch<T> find_neighbors_;
  Groups groups_;
  Exhaustive<T> exhaustive_;
};

}  // namespace k2
