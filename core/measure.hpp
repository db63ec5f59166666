// What can be asked of given centers: the nearest, the energy, the distances. Exact, in blocks, over the pool.
#pragma once

#include <cmath>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "sketch_search.hpp"
#include "types.hpp"

namespace k2 {

// `shift`: about where the centers are, if that is far from the origin; or null. `sketch`: of the rows, or null.
template <class T>
std::vector<Label> nearest_centers(Rows<const T> x, Rows<const T> centers, const T* shift, const Sketch<T>* sketch,
                                   Pool& pool) {
  std::vector<Label> labels(x.n, kUnassigned);
  if (sketch) {
    const Centers<T> all(centers.data, centers.n, centers.d);
    SketchSearch<T> search(x.n, centers.n, nullptr, sketch, pool.size());
    search.prepare(all, labels, false, pool);
    pool.for_chunks(x.n, SketchSearch<T>::kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Row rows[SketchSearch<T>::kBlock];
      for (std::size_t i = a; i < b; ++i) rows[i - a] = static_cast<Row>(i);
      search.look(x, all, labels, {rows, b - a}, search.all(), true, worker);
    });
    return labels;
  }
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
  groups.sort(labels, k, x.n);
  pool.for_chunks(k, 1, [&](std::size_t j, std::size_t, int) {
    const auto members = groups.members(j);
    std::vector<double> sum(x.d, 0.0);
    const std::vector<double> origin(x.d, 0.0);
    double weight = 0.0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (m + 2 < members.size()) prefetch_row(x[members[m + 2]], x.d);
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
double energy_of(Rows<const T> x, const double* weights, Rows<const T> centers, const Label* labels, Pool& pool) {
  return pool.tally<double>(x.n, 256, [&](std::size_t a, std::size_t b, int) {
    double sum = 0.0;
    for (std::size_t i = a; i < b; ++i) {
      const double s = kernels<T>().squared_distance(x[i], centers[static_cast<std::size_t>(labels[i])], x.d);
      sum += weights ? weights[i] * s : s;
    }
    return sum;
  });
}

// Of each row to the center of its label.
template <class T>
std::vector<double> squares_of(Rows<const T> x, Rows<const T> centers, const Label* labels, Pool& pool) {
  std::vector<double> out(x.n);
  pool.for_chunks(x.n, 256, [&](std::size_t a, std::size_t b, int) {
    for (std::size_t i = a; i < b; ++i) {
      out[i] = kernels<T>().squared_distance(x[i], centers[static_cast<std::size_t>(labels[i])], x.d);
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
