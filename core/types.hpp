// The nouns every other header speaks of: rows, labels, centers, and what a step costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace k2 {

using Label = std::int32_t;
using Row = std::uint32_t;  // index of a row: n < 2^32, checked in Python

inline constexpr Label kUnassigned = -1;

// A dense row-major matrix somebody else owns.
template <class T>
struct Rows {
  T* data = nullptr;
  std::size_t n = 0, d = 0;
  T* operator[](std::size_t i) const { return data + i * d; }
};

// Vector operations, counted as the paper counts them (Section 3): one unit per d-vector operation.
struct Ops {
  std::uint64_t distances = 0, products = 0, additions = 0;
  double sorts = 0.0;  // m log2(m) / d per sort of m rows
  Ops& operator+=(const Ops& o) {
    distances += o.distances, products += o.products, additions += o.additions, sorts += o.sorts;
    return *this;
  }
};

struct Assigned {
  Ops ops;
  std::int64_t moved = 0;  // rows whose label changed
  Assigned& operator+=(const Assigned& o) {
    ops += o.ops, moved += o.moved;
    return *this;
  }
};

struct Moved {
  Ops ops;
  double shift = 0.0;         // sum of the squared drifts
  std::vector<Row> refilled;  // rows given to clusters that had become empty
};

struct Step {
  Ops ops;
  std::int64_t moved = 0;
  double shift = 0.0;
};

// The label of the nearest center, ties to `current` if it is among them, else to the lowest index. This comparison
// is what "nearest" means in every method; the rest is avoiding it.
struct Nearest {
  Label label = kUnassigned;
  double square = std::numeric_limits<double>::infinity();  // exact

  void offer(Label j, double s, Label current) {
    if (s < square || (s == square && label != current && (j == current || j < label))) label = j, square = s;
  }
};

// The k centers and how far each moved last (drift). Only move.hpp and seeding.hpp write them.
template <class T>
struct Centers {
  std::size_t k = 0, d = 0;
  std::vector<T> value;
  std::vector<double> drift;

  Centers(const T* start, std::size_t k_, std::size_t d_)
      : k(k_), d(d_), value(start, start + k_ * d_), drift(k_, 0.0) {}
  const T* operator[](std::size_t j) const { return value.data() + j * d; }
  T* writable(std::size_t j) { return value.data() + j * d; }
};

// Scratch only grows: what is made anew would be filled with zeros first.
template <class T>
void grow(std::vector<T>& scratch, std::size_t size) {
  if (scratch.size() < size) scratch.resize(size);
}

}  // namespace k2
