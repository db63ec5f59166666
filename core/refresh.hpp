// Neighbors of centers that have moved a little since theirs were found: among those they had, and the nearest of their
// nearest. Centers that are near each other look together: each sees the candidates of all, and a product costs a tenth
// of a distance measured alone.
#pragma once

#include <algorithm>
#include <vector>

#include "distance.hpp"
#include "neighbors.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class NeighborRefresh {
 public:
  // Only the ids: those of the kNearest, then the others, both ascending. Returns how many distances were measured.
  std::uint64_t operator()(const Centers<T>& centers, const Neighbors& before, Neighbors& out, Pool& pool) {
    out.width = before.width;
    out.id.resize(before.id.size()), out.distance.clear();
    all_.pack({centers.value.data(), centers.k, centers.d}, nullptr, pool);
    scratch_.resize(static_cast<std::size_t>(pool.size()));
    for (Scratch& s : scratch_) s.slot.assign(centers.k, kNone);
    line_up(before, centers.k);
    return pool.tally<std::uint64_t>(centers.k, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      gather(before, {line_.data() + a, b - a}, s);
      for (std::size_t e = a; e < b; ++e) {
        const auto l = static_cast<std::size_t>(line_[e]);
        choose(centers, before.ids(l), l, e - a, s, out.id.data() + l * out.width);
      }
      for (const Label j : s.candidates) s.slot[static_cast<std::size_t>(j)] = kNone;
      return (s.candidates.size() - 1) * (b - a);
    });
  }

  // The share of the true neighbors that are in the graph, for some of the centers: it measures so many of them with
  // all.
  static std::size_t audited(std::size_t k) { return (k + every(k) - 1) / every(k); }
  double recall(const Centers<T>& centers, const Neighbors& graph, Pool& pool) const {
    const std::size_t audited = this->audited(centers.k);
    const auto found = pool.tally<std::size_t>(audited, 1, [&](std::size_t a, std::size_t, int) {
      const std::size_t l = a * every(centers.k);
      auto square = [&](std::size_t j) { return kernel_.squared_distance(centers[l], centers[j], centers.d); };
      std::vector<double> squares(centers.k);
      for (std::size_t j = 0; j < centers.k; ++j) squares[j] = square(j);
      const auto last = squares.begin() + static_cast<std::ptrdiff_t>(graph.width - 1);
      std::nth_element(squares.begin(), last, squares.end());
      const auto ids = graph.ids(l);
      return static_cast<std::size_t>(
          std::count_if(ids.begin(), ids.end(), [&](Label j) { return square(static_cast<std::size_t>(j)) <= *last; }));
    });
    return static_cast<double>(found) / static_cast<double>(audited * graph.width);
  }

 private:
  static constexpr std::size_t kBlock = 24, kNearest = 16, kAudited = 32;
  static constexpr std::int32_t kNone = -1;

  static std::size_t every(std::size_t k) { return (k + kAudited - 1) / kAudited; }

  struct Scratch {
    std::vector<std::int32_t> slot, found;  // slot: of each center among the candidates, or kNone
    std::vector<Label> candidates;
    Panels<T> packed;
    std::vector<T> dots, zeros;
    Shortlist<T> shortlist;
    Ranking ranking;
  };

  // Each block of the line: a center, the nearest of it, the nearest of these and so on.
  void line_up(const Neighbors& before, std::size_t k) {
    std::vector<char> waits(k, 1);
    line_.clear();
    std::size_t first = 0;  // no center before it waits
    while (line_.size() < k) {
      const std::size_t end = std::min(k, line_.size() + kBlock);
      for (std::size_t next = line_.size(); line_.size() < end; ++next) {
        if (next == line_.size()) {  // those in the block have no more
          while (!waits[first]) ++first;
          waits[first] = 0, line_.push_back(static_cast<Label>(first));
        }
        for (const Label j : nearest(before.ids(static_cast<std::size_t>(line_[next])))) {
          if (line_.size() == end) break;
          if (waits[static_cast<std::size_t>(j)]) waits[static_cast<std::size_t>(j)] = 0, line_.push_back(j);
        }
      }
    }
  }

  static std::span<const Label> nearest(std::span<const Label> ids) {
    return ids.first(std::min(kNearest, ids.size()));
  }

  // The candidates of the centers in a block, multiplied with them.
  void gather(const Neighbors& before, std::span<const Label> block, Scratch& s) const {
    s.candidates.clear();
    auto add = [&](std::span<const Label> ids) {
      for (const Label j : ids) {
        std::int32_t& slot = s.slot[static_cast<std::size_t>(j)];
        if (slot != kNone) continue;
        slot = static_cast<std::int32_t>(s.candidates.size());
        s.candidates.push_back(j);
      }
    };
    const T* x[kBlock];
    for (std::size_t e = 0; e < block.size(); ++e) {
      const auto own = before.ids(static_cast<std::size_t>(block[e]));
      add(own);
      for (const Label j : nearest(own)) add(nearest(before.ids(static_cast<std::size_t>(j))));
      x[e] = all_.centers()[static_cast<std::size_t>(block[e])];
    }
    s.packed.pack(all_, s.candidates);
    const std::size_t stride = s.packed.panels() * s.packed.width();
    grow(s.dots, kBlock * stride), grow(s.zeros, stride), grow(s.found, stride);
    s.packed.dots(x, block.size(), 0, s.packed.panels(), s.dots.data(), stride);
  }

  // The nearest candidates of center l: not farther than the farthest of those it had.
  void choose(const Centers<T>& centers, std::span<const Label> own, std::size_t l, std::size_t e, Scratch& s,
              Label* out) const {
    const std::size_t stride = s.packed.panels() * s.packed.width();
    const T *dots = s.dots.data() + e * stride, norm = norm_above(centers, l);
    auto candidate = [&](std::size_t c) {
      return Shortlist<T>::entry(s.packed, s.packed.base()[c] - 2 * dots[c] - norm * s.packed.slack()[c], c, norm);
    };
    T limit = -std::numeric_limits<T>::infinity();
    for (const Label j : own) {
      limit = std::max(limit, candidate(static_cast<std::size_t>(s.slot[static_cast<std::size_t>(j)])).high);
    }
    s.shortlist.start(own.size(), limit);
    // What passes has score + square < 0.
    const Gate<T> gate{s.packed.base(), s.packed.slack(), s.zeros.data(), s.zeros.data(), norm, -limit, 0, 0};
    const std::size_t passed = kernel_.survivors(dots, gate, stride, s.found.data());
    for (std::size_t f = 0; f < passed; ++f) {
      const auto entry = candidate(static_cast<std::size_t>(s.found[f]));
      if (s.shortlist.admits(entry.low)) s.shortlist.add(entry);
    }
    auto& found = s.shortlist.finish();
    const std::size_t few = nearest(own).size();
    if (found.size() == own.size() && clearly_first(found, few)) {
      std::transform(found.begin(), found.end(), out, [](const auto& entry) { return entry.id; });
    } else {
      s.ranking(centers, l, found, own.size());
      for (std::size_t c = 0; c < own.size(); ++c) out[c] = s.ranking.id(c);
    }
    std::sort(out, out + few), std::sort(out + few, out + own.size());
  }

  // Brings the m nearest to the front, in any order; whether the others are clearly farther.
  static bool clearly_first(std::vector<typename Shortlist<T>::Entry>& list, std::size_t m) {
    if (m == list.size()) return true;
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(m);
    std::nth_element(list.begin(), end, list.end(), [](const auto& a, const auto& b) { return a.high < b.high; });
    const auto high = std::max_element(list.begin(), end, [](const auto& a, const auto& b) { return a.high < b.high; });
    return std::all_of(end, list.end(), [&](const auto& e) { return high->high < e.low; });
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Panels<T> all_;
  std::vector<Label> line_;  // all centers, block after block
  std::vector<Scratch> scratch_;
};

}  // namespace k2
