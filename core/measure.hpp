// What can be asked of given centers: the nearest, the energy, the distances. Exact, in blocks, over the pool.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "sketch_search.hpp"
#include "squares.hpp"
#include "types.hpp"

namespace k2 {

// With many centers every 16th is looked at first: its distance tells which of the others can be nearer.
template <class T>
std::vector<Label> nearest_by_sketches(Rows<const T> x, const Centers<T>& centers, const Sketch<T>& sketch,
                                       Pool& pool) {
  constexpr std::size_t kEnough = 1024, kEvery = 16;
  std::vector<Label> labels(x.n, kUnassigned), few;
  SketchSearch<T> search(x.n, centers.k, nullptr, &sketch, pool.size());
  search.prepare(centers, labels, false, pool);
  for (std::size_t j = 0; j < centers.k; j += centers.k < kEnough ? 1 : kEvery) few.push_back(static_cast<Label>(j));
  pool.for_chunks(x.n, 4 * kPiece, [&](std::size_t a, std::size_t b, int worker) {
    std::vector<Row> rows(b - a);
    std::iota(rows.begin(), rows.end(), static_cast<Row>(a));
    const auto& first = few.size() == centers.k ? search.all() : search.listed(few, worker);
    search.look(x, centers, labels, rows, first, true, worker);
  });
  if (few.size() == centers.k) return labels;
  Groups groups;
  groups.sort(labels, centers.k, kPiece, pool);
  pool.for_chunks(groups.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
    const auto& piece = groups.pieces()[p];
    const auto rows = groups.rows(piece);
    Ops ops;
    const auto& near = search.within_reach(centers, rows, piece.cluster, worker, ops);
    search.look(x, centers, labels, rows, near, true, worker);
  });
  return labels;
}

// `shift`: about where the centers are, if that is far from the origin; or null. `sketch`: of the rows, or null.
template <class T>
std::vector<Label> nearest_centers(Rows<const T> x, Rows<const T> centers, const T* shift, const Sketch<T>* sketch,
                                   Pool& pool) {
  if (sketch) return nearest_by_sketches(x, Centers<T>(centers.data, centers.n, centers.d), *sketch, pool);
  std::vector<Label> labels(x.n, kUnassigned);
  Panels<T> panels;
  panels.pack(centers, shift, pool);
  label_nearest(x, panels, std::span<Label>(labels), pool);
  return labels;
}

// The mean of the rows of each label; zero where there are none.
template <class T>
std::vector<T> means_of(Rows<const T> x, const double* weights, std::span<const Label> labels, std::size_t k,
                        Pool& pool) {
  std::vector<T> out(k * x.d, T(0));
  Groups groups;
  groups.sort(labels, k, x.n, pool);
  pool.for_chunks(k, 1, [&](std::size_t j, std::size_t, int) {
    const auto members = groups.members(j);
    std::vector<double> sum(x.d, 0.0);
    const std::vector<double> origin(x.d, 0.0);
    const std::size_t ahead = rows_ahead<T>(x.d);
    double weight = 0.0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (m + ahead < members.size()) prefetch_row(x[members[m + ahead]], x.d);
      const double w = weights ? weights[members[m]] : 1.0;
      kernels<T>().accumulate(x[members[m]], origin.data(), w, sum.data(), x.d);
      weight += w;
    }
    if (weight > 0) {
      for (std::size_t i = 0; i < x.d; ++i) out[j * x.d + i] = static_cast<T>(sum[i] / weight);
    }
  });
  return out;
}

template <class T>
std::vector<T> all_distances(Rows<const T> x, Rows<const T> centers, Pool& pool) {
  std::vector<T> out(x.n * centers.n);
  pool.for_chunks(x.n, 16, [&](std::size_t a, std::size_t b, int) {
    for (std::size_t i = a; i < b; ++i) {
      for (std::size_t j = 0; j < centers.n; ++j) {
        out[i * centers.n + j] = T(std::sqrt(kernels<T>().squared_distance(x[i], centers[j], x.d)));
      }
    }
  });
  return out;
}

}  // namespace k2
