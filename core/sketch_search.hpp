// The best of many centers for each row, by sketches: which few could win, and which of those does.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "contest.hpp"
#include "large.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "sketch.hpp"
#include "types.hpp"
#include "weighing.hpp"

namespace k2 {

template <class T>
class SketchSearch {
 public:
  static constexpr std::size_t kBlock = 48;  // rows whose products are made at once

  // `sketch` null: the rows have no short sketch, or are short themselves; they are their own.
  SketchSearch(std::size_t n, std::size_t k, const double* weights, const Sketch<T>* sketch, int workers)
      : sketch_(sketch),
        weighing_(n, weights),
        clock_(k, 0.0),
        upper_(n, std::numeric_limits<float>::infinity()),
        scratch_(static_cast<std::size_t>(workers)) {}

  void forget(Row i) { upper_[i] = std::numeric_limits<float>::infinity(); }

  // Row i is not farther than this from center l.
  void remember(Row i, std::size_t l, double upper) {
    upper_[i] = static_cast<float>(upper - clock_[l] + (upper + clock_[l]) * 0x1p-22);
  }

  double upper(Row i, std::size_t l) const { return static_cast<double>(upper_[i]) + clock_[l]; }
  void prefetch_upper(Row i) const { prefetch_row(&upper_[i], 1); }

  // The centers have moved. What counts is Hartigan's comparison or the plain one.
  void prepare(const Centers<T>& centers, std::span<const Label> labels, bool hartigan, Pool& pool) {
    for (std::size_t j = 0; j < centers.k; ++j) clock_[j] += centers.drift[j];
    hartigan ? weighing_.hartigan(labels, centers.k, pool) : weighing_.plain();
    all_.pack({centers.value.data(), centers.k, centers.d}, sketch_, pool);
    for (std::size_t j = 0; j < centers.k; ++j) all_.stretch[j] = weighing_.template stretch<T>(j);
  }

  const Packed<T>& all() const { return all_; }
  const Weighing& weighing() const { return weighing_; }
  const Sketch<T>* sketch() const { return sketch_; }
  Rows<const T> sketches(Rows<const T> x) const { return sketch_ ? sketch_->rows() : x; }
  const double* weights() const { return weighing_.weights(); }

  // What a turn counted tells whether products of whole rows would have cost less than those of sketches and the
  // distances these left to measure. Then sketches are not asked any more.
  void judge_sketches(const Ops& o, std::size_t d) {
    const double longer = static_cast<double>(d) / Sketch<T>::kWidth - 1;
    if (static_cast<double>(o.products) * longer < kAlone * static_cast<double>(o.distances)) sketch_ = nullptr;
  }

  // Some of the centers, in the scratch of a worker. The ids must stay.
  const Packed<T>& listed(std::span<const Label> ids, int worker) {
    Packed<T>& list = scratch_[static_cast<std::size_t>(worker)].list;
    list.pack(all_, ids);
    return list;
  }

  // Those that could be nearest to one of these rows of cluster l, by the triangle inequality: not farther from its
  // center than twice the farthest of the rows. In the scratch of a worker; or all, if that is not few enough to pay.
  const Packed<T>& within_reach(const Centers<T>& centers, std::span<const Row> rows, std::size_t l, int worker,
                                Ops& ops) {
    double far = 0.0;
    for (const Row i : rows) far = std::max(far, upper(i, l));
    if (!(far < std::numeric_limits<double>::infinity())) return all_;
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    const Rows<const T> h = all_.panels.centers();
    const T* own = h[l];
    grow(s.dots, all_.size()), grow(s.reached, all_.size());
    all_.panels.dots(&own, 1, 0, all_.panels.panels(), s.dots.data(), all_.size());
    Gate<T> gate = all_.gate(own, h.d, all_.margin[l]);
    gate.reach = T(2 * far * (1 + 8 * kUnit<T>));
    ops.products += whole_rows(centers.k, centers.d);
    const std::size_t m = kernel_.survivors(s.dots.data(), gate, all_.size(), s.reached.data());
    return m > centers.k / 2 ? all_ : listed({s.reached.data(), m}, worker);
  }

  // Give the rows the best of the packed centers. `afresh`: ties go to the lowest index, and not to the label a row
  // has.
  Assigned look(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, std::span<const Row> rows,
                const Packed<T>& packed, bool afresh, int worker) {
    Assigned out;
    for (const Row i : rows) prefetch_row(&labels[i], 1), prefetch_upper(i);
    each(x, rows, packed, worker, [&](Row i, Gate<T>& gate, const T* dots, std::vector<std::int32_t>& found) {
      out += choose(x, centers, labels, i, packed, gate, afresh, dots, found);
    });
    out.ops.products = whole_rows(rows.size() * packed.panels.count(), x.d);
    return out;
  }

  // Products of sketches, counted as those of whole rows.
  std::uint64_t whole_rows(std::size_t products, std::size_t d) const {
    return sketch_ ? (products * Sketch<T>::kWidth + d / 2) / d : products;
  }

  // How many of the rows certainly have the nearest of the packed centers.
  std::size_t prove(Rows<const T> x, const Centers<T>& centers, std::span<const Label> labels,
                    std::span<const Row> rows, const Packed<T>& packed, int worker) {
    std::size_t out = 0;
    each(x, rows, packed, worker, [&](Row i, Gate<T>& gate, const T* dots, std::vector<std::int32_t>& found) {
      const T* own = centers[static_cast<std::size_t>(labels[i])];
      const double square = static_cast<double>(kernel_.near(x[i], own, x.d)), error = difference_error<T>(x.d);
      gate.reach = T(std::sqrt(square * (1 + 2 * error) + underflow<T>(x.d)) * (1 + 8 * kUnit<T>));
      const std::size_t m = kernel_.survivors(dots, gate, packed.size(), found.data());
      out += m == 0 || (m == 1 && packed.id(found[0]) == labels[i]);
    });
    return out;
  }

 private:
  static constexpr std::size_t kCenters = 256;  // whose products are made at once
  static constexpr double kAlone = 16;          // products that cost as much as a distance measured alone

  struct Scratch {
    Packed<T> list;
    std::vector<T> dots;
    std::vector<std::int32_t> found, reached;
  };

  // In blocks of rows, the products of their sketches with those of all the packed centers; then each row on its own,
  // with a gate to open. (A copy of the gate would wait until all its parts are written.)
  template <class F>
  void each(Rows<const T> x, std::span<const Row> rows, const Packed<T>& packed, int worker, F&& f) {
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    const Rows<const T> h = sketches(x);
    const Panels<T>& panels = packed.panels;
    const std::size_t width = panels.width(), padded = packed.size();
    grow(s.dots, kBlock * padded), grow(s.found, padded);
    for (; !rows.empty(); rows = rows.subspan(std::min(kBlock, rows.size()))) {
      const auto block = rows.first(std::min(kBlock, rows.size()));
      const T* sketches[kBlock];
      for (std::size_t r = 0; r < block.size(); ++r) prefetch_row(sketches[r] = h[block[r]], h.d);
      for (std::size_t first = 0; first < panels.panels(); first += kCenters / width) {
        const std::size_t count = std::min(kCenters / width, panels.panels() - first);
        panels.dots(sketches, block.size(), first, count, s.dots.data() + first * width, padded);
      }
      for (std::size_t r = 0; r < block.size(); ++r) {
        Gate<T> gate = packed.gate(sketches[r], h.d, sketch_ ? sketch_->margin()[block[r]] : T(0));
        f(block[r], gate, s.dots.data() + r * padded, s.found);
      }
    }
  }

  // One row: measure those that pass the gate, the most likely first, for it may close the gate to others.
  Assigned choose(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Row i, const Packed<T>& packed,
                  Gate<T>& gate, bool afresh, const T* dots, std::vector<std::int32_t>& found) {
    const Label own = labels[i];
    const auto l = static_cast<std::size_t>(own);
    const double error = difference_error<T>(x.d), lost = underflow<T>(x.d);
    Assigned out;
    Contest<T> contest(centers, x[i], afresh ? kUnassigned : own);
    auto score = [&](std::int32_t e) { return k2::score(gate, dots, static_cast<std::size_t>(e)); };
    auto open_for = [&](double value) {  // those that may count for less than this
      gate.reach = T(std::sqrt(value * (1 + 2 * error) + 2 * lost) * (1 + 8 * kUnit<T>));
    };
    auto passes = [&](std::int32_t e) {
      const T far = gate.reach * gate.stretch[e] + (gate.margin[e] + gate.own_margin);
      return score(e) + gate.square < far * far;
    };
    auto measure = [&](std::int32_t e) {
      const Label j = packed.id(e);
      contest.enter(j, weighing_.other(i, static_cast<std::size_t>(j)));
      open_for(contest.value());
      ++out.ops.distances;
    };
    auto count = [&] { return kernel_.survivors(dots, gate, packed.size(), found.data()); };
    auto is_own = [&](std::int32_t e) { return packed.id(e) == own; };

    if (own == kUnassigned) {
      Lowest<T> lowest{std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity(), 0};
      kernel_.lowest(dots, gate.base, gate.slack, gate.norm, packed.size(), 0, &lowest);
      measure(lowest.index);
    } else {
      if (weighing_.alone(i, l)) return out;
      const double keeps = weighing_.own(i, l);
      double upper = this->upper(i, l);
      const std::size_t slot = &packed == &all_ ? l : 0;  // a center is the first of its neighbors
      if (!sketch_ && packed.panels.id(slot) == own) {    // then the product alone tells nearly as much as the distance
        const auto norm = static_cast<double>(gate.norm);
        const double above = packed.panels.upper(k2::score(gate, dots, slot), slot, norm) + norm * norm;
        if (std::sqrt(above) < upper) {
          if (!(upper < std::numeric_limits<double>::infinity())) remember(i, l, std::sqrt(above));
          upper = std::sqrt(above);
        }
      }
      if (upper < std::numeric_limits<double>::infinity()) {  // then perhaps it need not be measured at all
        open_for(upper * upper * keeps);
        const std::size_t m = count();
        if (m == 0 || (m == 1 && is_own(found[0]))) return out;
      }
      contest.enter(own, keeps);
      open_for(contest.value());
      ++out.ops.distances;
    }
    const std::size_t m = count();
    const auto likely = std::min_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(m),
                                         [&](auto a, auto b) { return score(a) < score(b); });
    if (m > 0) std::iter_swap(found.begin(), likely);
    for (std::size_t f = 0; f < m; ++f) {
      if (!is_own(found[f]) && passes(found[f])) measure(found[f]);
    }
    out.moved = contest.best() != own;
    if (out.moved) labels[i] = contest.best();  // a write, even of the same, would take it from other cores' caches
    remember(i, static_cast<std::size_t>(contest.best()), Slack::of<T>(x.d).above(contest.square()));
    return out;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  const Sketch<T>* sketch_;  // of the rows, while it is worth its products; or null
  Weighing weighing_;
  std::vector<double> clock_;  // how far each center has come since the start
  Large<float> upper_;         // how far its own center was from a row when measured last, less that center's clock
  Packed<T> all_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
