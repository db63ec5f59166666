// The best of the centers on its own list for each row (own_lists.hpp).
#pragma once

#include <cmath>

#include "contest.hpp"
#include "distance.hpp"
#include "own_lists.hpp"
#include "sketch_search.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class OwnSearch {
 public:
  OwnSearch(SketchSearch<T>& search, const OwnLists<T>& lists) : search_(search), lists_(lists) {}

  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels,
                      std::span<const Row> rows) const {
    Assigned out;
    const Rows<const T> h = glances(x.d) ? search_.sketches(x) : x;
    const std::size_t ahead = rows_ahead<T>(h.d);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r + ahead < rows.size()) {
        const Row next = rows[r + ahead];
        prefetch_row(h[next], h.d), prefetch_row(lists_.of(next), lists_.length());
        prefetch_row(&labels[next], 1), search_.prefetch_upper(next);
      }
      out += choose(x, centers, labels, rows[r]);
    }
    if (glances(x.d)) out.ops.products = rows.size() * lists_.length();  // of sketches
    return out;
  }

 private:
  static constexpr std::size_t kMost = OwnLists<T>::kLength;
  static constexpr std::size_t kLongRow = 1024;  // values, from which on it pays to look at the sketches first

  bool glances(std::size_t d) const { return search_.sketch() && d >= kLongRow; }

  // One row. If it is long, only those centers are measured that its sketch does not say are too far.
  Assigned choose(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Row i) const {
    const Weighing& weighing = search_.weighing();
    const Label own = labels[i];
    const auto l = static_cast<std::size_t>(own);
    Assigned out;
    if (weighing.alone(i, l)) return out;
    std::span<const Label> ids{lists_.of(i), lists_.length()};
    Label close[kMost];
    if (glances(x.d)) {
      ids = {close, within_sight(i, l, ids, x.d, close)};
      if (ids.empty()) return out;
    }
    T squares[kMost];
    kernel_.nears(x[i], centers.value.data(), ids.data(), ids.size(), x.d, squares);
    Contest<T> contest(centers, x[i], own);
    contest.enter(own, weighing.own(i, l)), ++out.ops.distances;
    for (std::size_t m = 0; m < ids.size(); ++m) {
      if (ids[m] == own) continue;
      contest.enter(ids[m], weighing.other(i, static_cast<std::size_t>(ids[m])), static_cast<double>(squares[m]));
      ++out.ops.distances;
    }
    out.moved = contest.best() != own;
    if (out.moved) labels[i] = contest.best();
    search_.remember(i, static_cast<std::size_t>(contest.best()), Slack::of<T>(x.d).above(contest.square()));
    return out;
  }

  // Those of the centers, but for row i's own l, that may count for less than l by their sketches. Returns how many.
  std::size_t within_sight(Row i, std::size_t l, std::span<const Label> ids, std::size_t d, Label* out) const {
    const Packed<T>& all = search_.all();
    const double upper = search_.upper(i, l), error = difference_error<T>(d), lost = underflow<T>(d);
    const double most = upper * upper * search_.weighing().own(i, l);  // that its own may count for
    const T reach = T(std::sqrt(most * (1 + 2 * error) + 2 * lost) * (1 + 16 * kUnit<T>));
    const T shrink = T(1 - 2 * difference_error<T>(Sketch<T>::kWidth)), own_margin = search_.sketch()->margin()[i];
    T squares[kMost];
    kernel_.nears(search_.sketch()->rows()[i], all.panels.centers().data, ids.data(), ids.size(), Sketch<T>::kWidth,
                  squares);
    std::size_t found = 0;
    for (std::size_t m = 0; m < ids.size(); ++m) {
      const auto j = static_cast<std::size_t>(ids[m]);
      const T far = reach * all.stretch[j] + (all.margin[j] + own_margin);
      out[found] = ids[m];
      found += j != l && squares[m] * shrink - T(lost) < far * far;
    }
    return found;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  SketchSearch<T>& search_;
  const OwnLists<T>& lists_;
};

}  // namespace k2
