// Bounds as in the paper: one for each row and each place in its list, n x k_n of them.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "contest.hpp"
#include "neighborhood.hpp"

namespace k2 {

// Places in a list are not identities: when a list changes, or a row changes its list, bounds move to the place where
// their center stands now, and newcomers get the triangle inequality's.
template <class T>
class SlotBounds {
 public:
  SlotBounds(std::size_t n, std::size_t k, std::size_t width, int workers)
      : width_(width),
        lower_(n * width, 0.0f),
        upper_(n, std::numeric_limits<float>::infinity()),
        scratch_(static_cast<std::size_t>(workers), Scratch(k, width)) {}

  void forget(Row i) {
    std::fill_n(lower_.begin() + static_cast<std::ptrdiff_t>(i * width_), width_, 0.0f);
    upper_[i] = std::numeric_limits<float>::infinity();
  }

  Assigned operator()(const View<T>& view, const Neighborhood& near, std::span<const Row> rows, int worker) {
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    s.come_from(near);
    s.places.of(near.ids);
    Assigned out;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r + kAhead < rows.size()) {  // the rows of a cluster are scattered: ask for their bounds early
        prefetch_row(lower_.data() + rows[r + kAhead] * width_, width_);
        prefetch_row(upper_.data() + rows[r + kAhead], 1);
      }
      if (carry_bounds(view, near, rows[r], s)) {
        prefetch_row(view.x[rows[r]], view.x.d);
        s.open.emplace_back(rows[r], Contest<T>(view.centers, view.x[rows[r]], near.ids[0]));
      }
      if (s.open.size() == kOpen || r + 1 == rows.size()) out += assign_open(view, near, s);
    }
    return out;
  }

 private:
  static constexpr std::size_t kAhead = 8;
  static constexpr std::size_t kOpen = 8;  // rows that look at a center while it is in cache

  // A row that its bounds do not save.
  struct Open {
    Open(Row i_, Contest<T> contest_) : i(i_), contest(contest_) {}
    Row i;
    Contest<T> contest;
    double own = 0.0, upper = 0.0;
    bool done = false;
  };

  struct Scratch {
    Scratch(std::size_t k, std::size_t width) : places(k), origin(width), lost(width), gap(width), bound(width) {}

    // origin[s]: where the center now in place s stood before; lost[s]: how much of its bound its drift takes, all of
    // it for newcomers; gap[s]: its distance to the center of the list.
    void come_from(const Neighborhood& near) {
      places.of(near.before);
      for (std::size_t s = 0; s < near.ids.size(); ++s) {
        const int from = places[near.ids[s]];
        origin[s] = std::max(from, 0);
        lost[s] = from < 0 ? std::numeric_limits<float>::infinity() : Slack::up(near.drift[near.ids[s]]);
        gap[s] = Slack::down(near.gaps[s]);
      }
    }

    Places places;
    std::vector<int> origin;
    std::vector<float> lost, gap, bound;
    std::vector<Open> open;
  };

  // Bring the bounds of row i to this iteration. True if some center of its list may be as near as its own.
  bool carry_bounds(const View<T>& view, const Neighborhood& near, Row i, Scratch& s) {
    float* lower = lower_.data() + i * width_;
    float* bound = s.bound.data();
    const float above = upper_[i] = Slack::up(upper_[i] + near.drift[near.ids[0]]);
    for (std::size_t p = 0; p < width_; ++p) bound[p] = lower[s.origin[p]];
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t p = 1; p < width_; ++p) {
      const float b = std::max(bound[p] - s.lost[p], s.gap[p] - above);
      lower[p] = std::max(0.0f, b * (1 - 0x1p-22f));  // covers the rounding of this line and the one above
      least = std::min(least, lower[p]);
    }
    check_list(view.x[i], view.centers, near.ids, [&](std::size_t p) { return lower[p]; }, above);
    return least <= above;
  }

  // The open rows look at the places of the list in turn, each as long as it must.
  Assigned assign_open(const View<T>& view, const Neighborhood& near, Scratch& s) {
    const Slack slack = Slack::of<T>(view.x.d);
    Assigned out;
    for (Open& row : s.open) {
      const double square = row.contest.enter(near.ids[0]);
      row.own = row.upper = slack.above(square);
      lower_[row.i * width_] = slack.below(square);
      ++out.ops.distances;
    }
    std::size_t looking = s.open.size();
    for (std::size_t p = 1; p < width_ && looking > 0; ++p) {
      for (Open& row : s.open) {
        float& lower = lower_[row.i * width_ + p];
        if (row.done || lower > row.upper) continue;
        if (near.gaps[p] > row.own + row.upper) {  // sorted by gap: nobody further can win (Alg. 1, line 11)
          row.done = true;
          --looking;
          continue;
        }
        lower = slack.below(row.contest.enter(near.ids[p]));
        row.upper = slack.above(row.contest.square());
        ++out.ops.distances;
      }
    }
    for (Open& row : s.open) {
      upper_[row.i] = static_cast<float>(row.upper);
      if (row.contest.best() == near.ids[0]) continue;
      view.labels[row.i] = row.contest.best();
      change_list(lower_.data() + row.i * width_, row.upper, row.contest.best(), view.graph, s);
      ++out.moved;
    }
    s.open.clear();
    return out;
  }

  // A row that moves takes its bounds along to the list of its new center.
  void change_list(float* lower, double upper, Label to, const Neighbors& graph, Scratch& s) {
    std::copy_n(lower, width_, s.bound.data());
    const auto l = static_cast<std::size_t>(to);
    for (std::size_t p = 0; p < width_; ++p) {
      const int place = s.places[graph.ids(l)[p]];
      lower[p] = place >= 0 ? s.bound[static_cast<std::size_t>(place)] : Slack::down(graph.distances(l)[p] - upper);
    }
  }

  std::size_t width_;
  std::vector<float> lower_, upper_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
