// Bounds as in the paper: one for each row and each place in its list, n x k_n of them.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "contest.hpp"
#include "neighborhood.hpp"

namespace k2 {

// Places in a list are not identities: when a list changes, or a row changes
// its list, bounds move to the place where their center stands now, and newcomers get the triangle inequality's.
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
    bool busy = false;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      // The rows of a cluster are scattered: ask for bounds early, and for the next row while rows are being read.
      if (r + kAhead < rows.size()) {
        prefetch_row(lower_.data() + rows[r + kAhead] * width_, width_);
        prefetch_row(upper_.data() + rows[r + kAhead], 1);
      }
      if (busy && r + 1 < rows.size()) prefetch_row(view.x[rows[r + 1]], view.x.d);
      const Assigned row = assign_row(view, near, rows[r], s);
      busy = row.ops.distances > 0;
      out += row;
    }
    return out;
  }

 private:
  static constexpr std::size_t kAhead = 8;

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
  };

  Assigned assign_row(const View<T>& view, const Neighborhood& near, Row i, Scratch& s) {
    const Slack slack = Slack::of<T>(view.x.d);
    Assigned out;
    float* lower = lower_.data() + i * width_;
    float* bound = s.bound.data();
    const float above = upper_[i] = Slack::up(upper_[i] + near.drift[near.center]);
    for (std::size_t p = 0; p < width_; ++p) bound[p] = lower[s.origin[p]];
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t p = 1; p < width_; ++p) {
      const float b = std::max(bound[p] - s.lost[p], s.gap[p] - above);
      lower[p] = std::max(0.0f, b * (1 - 0x1p-22f));  // covers the rounding of this line and the one above
      least = std::min(least, lower[p]);
    }
    check_list(view.x[i], view.centers, near.ids, [&](std::size_t p) { return lower[p]; }, above);
    if (least > above) return out;

    Contest<T> contest(view.centers, view.x[i], near.ids[0]);
    const double d = contest.enter(near.ids[0]);
    const double own = slack.above(d);
    double upper = own;
    lower[0] = slack.below(d);
    ++out.ops.distances;
    for (std::size_t p = 1; p < width_; ++p) {
      if (near.gaps[p] > own + upper) break;  // sorted by gap: nobody further can win (Alg. 1, line 11)
      if (lower[p] > upper) continue;
      lower[p] = slack.below(contest.enter(near.ids[p]));
      upper = slack.above(contest.square());
      ++out.ops.distances;
    }
    upper_[i] = static_cast<float>(upper);
    if (contest.best() != near.ids[0]) {
      view.labels[i] = contest.best();
      change_list(lower, upper, contest.best(), view.graph, s);
      out.moved = 1;
    }
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
