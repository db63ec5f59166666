// A rough assignment, for early iterations: Hartigan's comparison (weighing.hpp) over the centers near a row's own, by
// products alone. What rounding decides may be decided wrongly; but nothing is fused, so it is so on every CPU.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "center_graph.hpp"
#include "distance.hpp"
#include "groups.hpp"
#include "large.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "swaps.hpp"
#include "types.hpp"
#include "weighing.hpp"

namespace k2 {

template <class T>
class AssignRough {
 public:
  AssignRough(Rows<const T> x, const double* weights, std::size_t neighbors, std::size_t turns, Pool& pool)
      : turns_(turns), weighing_(x.n, weights), square_(x.n), graph_(neighbors), scratch_(std::size_t(pool.size())) {
    const std::vector<T> origin(x.d, T(0));
    pool.for_chunks(x.n, 4096, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t i = a; i < b; ++i) square_[i] = T(kernel_.squared_distance(x[i], origin.data(), x.d));
    });
  }

  // The rows whose turn it is; all have a label.
  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    Assigned out;
    if (turn_ == 0) out.ops.distances = graph_.follow(centers, kRecall, pool);
    all_.pack({centers.value.data(), centers.k, centers.d}, nullptr, pool);
    weighing_.hartigan(labels, centers.k, pool);
    groups_.sort({x.n, turns_, turn_}, labels, centers.k, kPiece, pool);
    turn_ = (turn_ + 1) % turns_;
    return out += pool.tally<Assigned>(groups_.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const Groups::Piece& piece = groups_.pieces()[p];
      return look(x, labels, groups_.rows(piece), piece.cluster, scratch_[static_cast<std::size_t>(worker)]);
    });
  }

  // Between two iterations: of clusters. Returns the share of the energy that is saved.
  double swap(Rows<const T> x, std::size_t k, std::span<Label> labels, std::uint64_t seed, Ops& ops, Pool& pool) {
    ClusterSwaps<T> swap(x, weighing_.weights(), k, seed, kCostly);
    const double saved = swap(labels, pool);
    if (saved > 0) graph_.add(swap.beside(), pool);
    ops += swap.ops();
    return saved;
  }

  void forget(Row) {}

 private:
  static constexpr std::size_t kBlock = 48;  // rows whose products are made at once
  static constexpr double kRecall = 0.8;     // of the true neighbors
  static constexpr double kCostly = 1.0;     // times the mean energy of a cluster: worth cutting

  struct Scratch {
    Panels<T> list;
    std::vector<T> dots, base, factor;
  };

  // Rows of cluster l: those for which another counts for less than l.
  Assigned look(Rows<const T> x, std::span<Label> labels, std::span<const Row> rows, std::size_t l, Scratch& s) {
    const auto ids = graph_.ids(l);
    s.list.pack(all_, ids);
    const std::size_t padded = s.list.panels() * s.list.width();
    const auto own = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), static_cast<Label>(l)) - ids.begin());
    s.base.assign(s.list.base(), s.list.base() + padded), s.factor.assign(padded, T(1));
    s.base[own] = std::numeric_limits<T>::infinity();  // it is not one of the others
    grow(s.dots, kBlock * padded);
    Assigned out;
    out.ops.products = rows.size() * ids.size();
    for (std::size_t first = 0; first < rows.size(); first += kBlock) {
      const auto block = rows.subspan(first, std::min(kBlock, rows.size() - first));
      const T* row[kBlock];
      for (std::size_t r = 0; r < block.size(); ++r) {
        prefetch_row(row[r] = x[block[r]], x.d), prefetch_row(&square_[block[r]], 1);
      }
      s.list.heads(row, block.size(), s.dots.data(), padded);
      for (std::size_t r = 0; r < block.size(); ++r) {
        const Row i = block[r];
        if (weighing_.alone(i, l)) continue;
        if (weighing_.weights() || first + r == 0) weigh(ids, i, s.factor);
        const T *dots = s.dots.data() + r * padded, square = square_[i];
        auto value = [&](std::size_t j) { return (square + (s.base[j] - 2 * dots[j])) * s.factor[j]; };
        const T stays = (square + (s.list.base()[own] - 2 * dots[own])) * T(weighing_.own(i, l));
        const T least = kernel_.least(dots, s.base.data(), s.factor.data(), square, padded);
        if (!(least < stays)) continue;
        std::size_t j = 0;
        while (value(j) != least) ++j;
        labels[i] = ids[j], ++out.moved;
      }
    }
    return out;
  }

  // What the distance of row i to each of these counts for.
  void weigh(std::span<const Label> ids, Row i, std::vector<T>& factor) const {
    for (std::size_t j = 0; j < ids.size(); ++j) factor[j] = T(weighing_.other(i, static_cast<std::size_t>(ids[j])));
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::size_t turns_, turn_ = 0;
  Weighing weighing_;
  Large<T> square_;  // of each row's length
  CenterGraph<T> graph_;
  Panels<T> all_;
  Groups groups_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
