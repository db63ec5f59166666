// Rows grouped by label (counting sort), and cut into pieces of work.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "large.hpp"
#include "random.hpp"
#include "types.hpp"

namespace k2 {

inline constexpr std::size_t kPiece = 192;  // rows of a cluster that are one piece of work

// Some of n rows: of every `turns` on end the one whose turn it is, in an order drawn by lot.
struct Turn {
  std::size_t n, turns = 1, turn = 0;

  template <class F>
  void each(F&& f) const {
    for (std::size_t first = 0; first < n; first += turns) {
      const std::uint64_t lot = turns == 1 ? 0 : (Random::mix(first) >> 32) * turns >> 32;
      const std::size_t i = first + (lot + turn < turns ? lot + turn : lot + turn - turns);
      if (i < n) f(static_cast<Row>(i));
    }
  }
};

class Groups {
 public:
  struct Piece {
    std::size_t cluster, begin, end;  // order()[begin, end) all have this label
  };

  void sort(std::span<const Label> labels, std::size_t k, std::size_t most) { sort({labels.size()}, labels, k, most); }

  // Only the rows whose turn it is.
  void sort(const Turn& turn, std::span<const Label> labels, std::size_t k, std::size_t most) {
    begin_.assign(k + 1, 0);
    turn.each([&](Row i) { ++begin_[static_cast<std::size_t>(labels[i]) + 1]; });
    for (std::size_t j = 0; j < k; ++j) begin_[j + 1] += begin_[j];
    order_.resize(begin_[k]);
    fill_.assign(begin_.begin(), begin_.end() - 1);
    turn.each([&](Row i) { order_[fill_[static_cast<std::size_t>(labels[i])]++] = i; });
    pieces_.clear();
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t b = begin_[j]; b < begin_[j + 1]; b += most) {
        pieces_.push_back({j, b, std::min(begin_[j + 1], b + most)});
      }
    }
  }

  std::span<const Row> order() const { return order_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::span<const Row> rows(const Piece& p) const { return {order_.data() + p.begin, p.end - p.begin}; }
  std::span<const Row> members(std::size_t j) const { return {order_.data() + begin_[j], begin_[j + 1] - begin_[j]}; }

 private:
  Large<Row> order_;
  std::vector<std::size_t> begin_, fill_;
  std::vector<Piece> pieces_;
};

}  // namespace k2
