// Rows grouped by label (counting sort), and cut into pieces of work.
#pragma once

#include <span>
#include <vector>

#include "types.hpp"

namespace k2 {

inline constexpr std::size_t kPiece = 192;  // rows of a cluster that are one piece of work

class Groups {
 public:
  struct Piece {
    std::size_t cluster, begin, end;  // order()[begin, end) all have this label
  };

  void sort(std::span<const Label> labels, std::size_t k, std::size_t most) {
    begin_.assign(k + 1, 0);
    for (const Label l : labels) ++begin_[static_cast<std::size_t>(l) + 1];
    for (std::size_t j = 0; j < k; ++j) begin_[j + 1] += begin_[j];
    order_.resize(labels.size());
    fill_.assign(begin_.begin(), begin_.end() - 1);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      order_[fill_[static_cast<std::size_t>(labels[i])]++] = static_cast<Row>(i);
    }
    pieces_.clear();
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t b = begin_[j]; b < begin_[j + 1]; b += most) {
        pieces_.push_back({j, b, std::min(begin_[j + 1], b + most)});
      }
    }
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  std::span<const Row> rows(const Piece& p) const { return {order_.data() + p.begin, p.end - p.begin}; }
  std::span<const Row> members(std::size_t j) const { return {order_.data() + begin_[j], begin_[j + 1] - begin_[j]}; }

 private:
  std::vector<Row> order_;
  std::vector<std::size_t> begin_, fill_;
  std::vector<Piece> pieces_;
};

}  // namespace k2
