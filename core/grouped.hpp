// The m nearest centers of every row among those of the groups that lie nearest to it: exact for the centers it looks
// at, and it looks at few. How many groups are enough is the caller's business.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "several.hpp"
#include "sketch.hpp"
#include "types.hpp"

namespace k2 {

// `sketch`: of the rows x, or null: then they are their own.
template <class T>
class GroupedSearch {
 public:
  GroupedSearch(Rows<const T> centers, Rows<const T> middles, std::span<const Label> group_of, const Sketch<T>* sketch,
                std::size_t m, Pool& pool)
      : centers_(centers), sketch_(sketch), m_(std::min(m, centers.n)), groups_(middles.n) {
    all_.pack(centers, sketch, pool);
    middles_.pack(middles, sketch, pool);
    Groups grouped;
    grouped.sort(group_of, middles.n, centers.n, pool);
    pool.for_chunks(middles.n, 1, [&](std::size_t g, std::size_t, int) {
      const auto members = grouped.members(g);
      groups_[g].ids.assign(members.begin(), members.end());
      groups_[g].packed.pack(all_, groups_[g].ids);
    });
  }

  // `probes`: groups to look at for each row; more, if they might not have m centers.
  Several<T> operator()(Rows<const T> x, std::size_t probes, Pool& pool) const {
    probes = std::min(std::max(probes, fewest()), groups_.size());
    Several<T> out{std::vector<Label>(x.n * m_), std::vector<double>(x.n * m_)};
    std::vector<Scratch> scratch(static_cast<std::size_t>(pool.size()));
    pool.for_chunks(x.n, kTogether, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch[static_cast<std::size_t>(worker)];
      s.best.assign(b - a, Closest(m_));
      choose(x, a, b, probes, s);
      look(x, a, s.nearest, s);  // first: what it finds lets most of the others go
      look(x, a, s.others, s);
      for (std::size_t i = a; i < b; ++i) s.best[i - a].finish(&out.ids[i * m_], &out.distances[i * m_]);
    });
    return out;
  }

 private:
  // Rows that are looked at together: so many that each group is asked by some, so few that they stay in the cache.
  static constexpr std::size_t kTogether = 2048, kBlock = 48;

  struct Group {
    std::vector<Label> ids;
    Packed<T> packed;
  };

  struct Scratch {
    std::vector<T> dots, scores;
    std::vector<typename Packed<T>::Length> length;  // of each row
    std::vector<std::int32_t> found;
    std::vector<Label> nearest, others;  // groups to look at: one for each row; the other probes
    Groups asked;
    std::vector<Closest> best;
  };

  // As many groups as have m centers between them, whichever they are.
  std::size_t fewest() const {
    std::vector<std::size_t> sizes;
    for (const Group& g : groups_) sizes.push_back(g.ids.size());
    std::sort(sizes.begin(), sizes.end());
    std::size_t count = 0, held = 0;
    while (held < m_) held += sizes[count++];
    return count;
  }

  Rows<const T> sketches(Rows<const T> x) const { return sketch_ ? sketch_->rows() : x; }

  // The groups whose middles are nearest.
  void choose(Rows<const T> x, std::size_t a, std::size_t b, std::size_t probes, Scratch& s) const {
    const Rows<const T> h = sketches(x);
    const std::size_t padded = middles_.size();
    s.nearest.clear(), s.others.clear(), s.length.clear();
    grow(s.dots, kBlock * padded), grow(s.found, padded), grow(s.scores, padded);
    for (std::size_t first = a; first < b; first += kBlock) {
      const T* rows[kBlock];
      const std::size_t size = std::min(kBlock, b - first);
      for (std::size_t r = 0; r < size; ++r) rows[r] = h[first + r];
      middles_.panels.dots(rows, size, 0, middles_.panels.panels(), s.dots.data(), padded);
      for (std::size_t r = 0; r < size; ++r) {
        s.length.push_back(Packed<T>::length(rows[r], h.d));
        choose(s.dots.data() + r * padded, probes, s);
      }
    }
  }

  // One row, of which these are the products with the middles.
  void choose(const T* dots, std::size_t probes, Scratch& s) const {
    kernel_.scores(dots, middles_.panels.base(), middles_.size(), s.scores.data());
    kernel_.few(s.scores.data(), middles_.size(), probes, s.found.data());
    const auto end = s.found.begin() + static_cast<std::ptrdiff_t>(probes);
    std::iter_swap(s.found.begin(), std::min_element(s.found.begin(), end, [&](auto g, auto h) {
                     return s.scores[static_cast<std::size_t>(g)] < s.scores[static_cast<std::size_t>(h)];
                   }));
    s.nearest.push_back(s.found[0]);
    s.others.insert(s.others.end(), s.found.begin() + 1, end);
  }

  // Rows from a on look at groups, each at as many.
  void look(Rows<const T> x, std::size_t a, std::span<const Label> asked, Scratch& s) const {
    const auto each = static_cast<Row>(asked.size() / s.best.size()), from = static_cast<Row>(a);
    Pool alone(1);
    s.asked.sort(asked, groups_.size(), kBlock, alone);
    for (const auto& piece : s.asked.pieces()) {
      Row rows[kBlock];
      std::size_t count = 0;
      for (const Row place : s.asked.rows(piece)) rows[count++] = from + place / each;
      look(x, a, {rows, count}, groups_[piece.cluster].packed, s);
    }
  }

  void look(Rows<const T> x, std::size_t a, std::span<const Row> rows, const Packed<T>& packed, Scratch& s) const {
    const Rows<const T> h = sketches(x);
    const std::size_t padded = packed.size();
    const double error = difference_error<T>(x.d), lost = underflow<T>(x.d);
    const T* sketches[kBlock];
    for (std::size_t r = 0; r < rows.size(); ++r) sketches[r] = h[rows[r]];
    grow(s.dots, kBlock * padded), grow(s.found, padded);
    packed.panels.dots(sketches, rows.size(), 0, packed.panels.panels(), s.dots.data(), padded);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Row i = rows[r];
      const T* dots = s.dots.data() + r * padded;
      Closest& best = s.best[i - a];
      Gate<T> gate = packed.gate(s.length[i - a], sketch_ ? sketch_->margin()[i] : T(0));
      auto score = [&](std::int32_t e) { return k2::score(gate, dots, static_cast<std::size_t>(e)); };
      auto narrow = [&] {
        gate.reach = T(std::sqrt(best.farthest() * (1 + 2 * error) + 2 * lost) * (1 + 8 * kUnit<T>));
      };
      narrow();
      const std::size_t count = kernel_.survivors(dots, gate, padded, s.found.data());
      const auto first = s.found.begin(), end = first + static_cast<std::ptrdiff_t>(count);
      if (count > m_) {  // the likely ones first
        std::nth_element(first, first + static_cast<std::ptrdiff_t>(m_ - 1), end,
                         [&](auto e, auto f) { return score(e) < score(f); });
      }
      for (auto e = first; e != end; ++e) {
        const T far = gate.reach + packed.margin[static_cast<std::size_t>(*e)] + gate.own_margin;
        if (!(score(*e) + gate.square < far * far)) continue;
        const Label j = packed.id(*e);
        best.offer(kernel_.squared_distance(x[i], centers_[static_cast<std::size_t>(j)], x.d), j);
        narrow();
      }
    }
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> centers_;
  const Sketch<T>* sketch_;
  std::size_t m_;
  Packed<T> all_, middles_;
  std::vector<Group> groups_;
};

}  // namespace k2
