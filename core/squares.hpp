// Squared distances of rows to the centers of their labels, exactly.
#pragma once

#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

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
std::vector<double> squares_of(Rows<const T> x, Rows<const T> centers, const Label* labels, Pool& pool) {
  std::vector<double> out(x.n);
  pool.for_chunks(x.n, 256, [&](std::size_t a, std::size_t b, int) {
    for (std::size_t i = a; i < b; ++i) {
      out[i] = kernels<T>().squared_distance(x[i], centers[static_cast<std::size_t>(labels[i])], x.d);
    }
  });
  return out;
}

}  // namespace k2
