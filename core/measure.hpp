// What can be asked of given centers: the nearest, the energy, the distances. Exact, in blocks, over the pool.
#pragma once

#include <cmath>
#include <vector>

#include "distance.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

// `shift`: about where the centers are, if that is far from the origin; or null.
template <class T>
std::vector<Label> nearest_centers(Rows<const T> x, Rows<const T> centers, const T* shift, Pool& pool) {
  std::vector<Label> labels(x.n, kUnassigned);
  Panels<T> panels;
  panels.pack(centers, shift, pool);
  label_nearest(x, panels, std::span<Label>(labels), pool);
  return labels;
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
