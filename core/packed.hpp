// Centers packed as sketches, and what a row must know of each to pass it by.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "distance.hpp"
#include "large.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "sketch.hpp"
#include "types.hpp"

namespace k2 {

// `sketch` null: rows and centers are their own sketches.
template <class T>
struct Packed {
  Panels<T> panels;
  std::vector<T> stretch, margin;  // one each, and zero, for what fills the last panel

  void pack(Rows<const T> centers, const Sketch<T>* sketch, Pool& pool) {
    if (sketch) {
      sketches_.resize(centers.n * Sketch<T>::kWidth);
      margins_.resize(centers.n);
      sketch->of(centers, sketches_.data(), margins_.data(), pool);
      panels.pack({sketches_.data(), centers.n, Sketch<T>::kWidth}, nullptr, pool);
    } else {
      margins_.clear();
      panels.pack(centers, nullptr, pool);
    }
    fill();
    std::copy(margins_.begin(), margins_.end(), margin.begin());
  }

  // Only some of the centers that are in `all`.
  void pack(const Packed& all, std::span<const Label> ids) {
    panels.pack(all.panels, ids);
    fill();
    for (std::size_t e = 0; e < ids.size(); ++e) {
      stretch[e] = all.stretch[static_cast<std::size_t>(ids[e])];
      margin[e] = all.margin[static_cast<std::size_t>(ids[e])];
    }
  }

  std::size_t size() const { return stretch.size(); }  // whole panels
  Label id(std::int32_t slot) const { return panels.id(static_cast<std::size_t>(slot)); }

  // What a gate must know of a row with this sketch of d numbers: not less than its norm, not more than its square.
  struct Length {
    T norm, square;
  };
  static Length length(const T* row, std::size_t d) {
    const double error = difference_error<T>(d), square = static_cast<double>(kernels<T>().square(row, d));
    return {T(std::sqrt(square) * (1 + 2 * error)), T(square * (1 - 8 * error) - underflow<T>(d))};
  }

  // Still closed: nobody is within a reach of zero.
  Gate<T> gate(const Length& row, T own_margin) const {
    return {panels.base(), panels.slack(), stretch.data(), margin.data(), row.norm, row.square, T(0), own_margin};
  }
  Gate<T> gate(const T* row, std::size_t d, T own_margin) const { return gate(length(row, d), own_margin); }

 private:
  void fill() {
    stretch.assign(panels.panels() * panels.width(), T(1));
    margin.assign(panels.panels() * panels.width(), T(0));
  }

  Large<T> sketches_;
  std::vector<T> margins_;
};

// The lower end of the squared distance that center j's product tells, less the square of the row.
template <class T>
T score(const Gate<T>& gate, const T* dots, std::size_t j) {
  return gate.base[j] - 2 * dots[j] - gate.norm * gate.slack[j];
}

}  // namespace k2
