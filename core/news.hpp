// Which centers have changed since the rows of a turn looked at all of them. Only these can win a row from a center
// that has not changed since: not moved, and joined by nobody.
#pragma once

#include <span>
#include <vector>

#include "types.hpp"

namespace k2 {

class News {
 public:
  News(std::size_t k, std::size_t turns) : changed_(k, 0), looked_(turns, 0) {}

  // A turn begins: who has moved since the last one?
  void begin(std::span<const double> drift) {
    ++time_;
    for (std::size_t j = 0; j < drift.size(); ++j) {
      if (drift[j] != 0) changed_[j] = time_;
    }
  }

  // The rows of this turn have the nearest of all centers as they are.
  void looked(std::size_t turn) { looked_[turn] = time_; }
  bool has_looked(std::size_t turn) const { return looked_[turn] > 0; }

  // Rows went to other clusters.
  void joined(std::span<const Label> labels, std::span<const Label> before) {
    if (!has_looked(0)) return;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] != before[i]) changed_[static_cast<std::size_t>(labels[i])] = time_;
    }
  }

  bool changed(std::size_t center, std::size_t turn) const { return changed_[center] > looked_[turn]; }
  std::span<const Label> since(std::size_t turn) {
    ids_.clear();
    for (std::size_t j = 0; j < changed_.size(); ++j) {
      if (changed(j, turn)) ids_.push_back(static_cast<Label>(j));
    }
    return ids_;
  }

 private:
  std::uint64_t time_ = 0;                       // turns so far
  std::vector<std::uint64_t> changed_, looked_;  // when a center changed last; when a turn's rows saw all
  std::vector<Label> ids_;
};

}  // namespace k2
