// Rows grouped by label (counting sort), and cut into pieces of work.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "large.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "types.hpp"

namespace k2 {

inline constexpr std::size_t kPiece = 192;  // rows of a cluster that are one piece of work

// Some of n rows: of every `turns` on end the one whose turn it is, in an order drawn by lot.
struct Turn {
  std::size_t n, turns = 1, turn = 0;

  // Those of one part of the rows, one of `parts`.
  template <class F>
  void each(std::size_t part, std::size_t parts, F&& f) const {
    const std::size_t lots = (n + turns - 1) / turns, end = lots * (part + 1) / parts * turns;
    for (std::size_t first = lots * part / parts * turns; first < end; first += turns) {
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

  void sort(std::span<const Label> labels, std::size_t k, std::size_t most, Pool& pool) {
    sort(Turn{labels.size()}, labels, k, most, pool);
  }

  // Only the rows whose turn it is. `labels[i]`: of row i, one of k. Threads count a part of the rows each, and so know
  // where these go: a cluster's rows keep their order, however many parts there are.
  template <class Labels>
  void sort(const Turn& turn, const Labels& labels, std::size_t k, std::size_t most, Pool& pool) {
    const auto threads = static_cast<std::size_t>(pool.size());
    const std::size_t parts = std::clamp<std::size_t>(turn.n / turn.turns / std::max(k, kMany), 1, threads);
    next_.assign(parts * k, 0), begin_.assign(k + 1, 0);
    pool.for_chunks(parts, 1, [&](std::size_t p, std::size_t, int) {
      turn.each(p, parts, [count = &next_[p * k], &labels](Row i) { ++count[labels[i]]; });
    });
    std::size_t at = 0;
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t p = 0; p < parts; ++p) at += std::exchange(next_[p * k + j], at);
      begin_[j + 1] = at;
    }
    order_.resize(at);
    pool.for_chunks(parts, 1, [&](std::size_t p, std::size_t, int) {
      turn.each(p, parts,
                [next = &next_[p * k], order = order_.data(), &labels](Row i) { order[next[labels[i]]++] = i; });
    });
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
  static constexpr std::size_t kMany = 1 << 14;  // rows, that a part has at least

  Large<Row> order_;
  std::vector<std::size_t> begin_, next_;  // where each cluster begins; where its next row of each part goes
  std::vector<Piece> pieces_;
};

}  // namespace k2
