// What the rows of a cluster see of the centers around theirs, for both kinds of bounds.
#pragma once

#include <span>
#include <vector>

#include "neighbors.hpp"
#include "panels.hpp"
#include "types.hpp"

namespace k2 {

// What an iteration works on.
template <class T>
struct View {
  Rows<const T> x;
  const Centers<T>& centers;
  const Panels<T>& panels;  // all the centers, packed
  const Neighbors& graph;
  std::span<Label> labels;
};

// One cluster in one iteration, as its rows see it.
struct Neighborhood {
  std::span<const Label> ids;     // N(l), l itself first
  const double* gaps;             // ||c_l - c_j||, ascending
  std::span<const Label> before;  // N(l) one iteration ago; empty at first
  const double* drift;            // of all centers, since then
};

// Where a center stands in a list, by its name.
class Places {
 public:
  explicit Places(std::size_t k) : place_(k, -1) {}
  void of(std::span<const Label> ids) {
    for (const Label j : listed_) place_[static_cast<std::size_t>(j)] = -1;
    listed_.assign(ids.begin(), ids.end());
    for (std::size_t s = 0; s < ids.size(); ++s) place_[static_cast<std::size_t>(ids[s])] = static_cast<int>(s);
  }
  int operator[](Label j) const { return place_[static_cast<std::size_t>(j)]; }  // -1: not in the list

 private:
  std::vector<int> place_;
  std::vector<Label> listed_;
};

}  // namespace k2
