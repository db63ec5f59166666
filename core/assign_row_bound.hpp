// One lower bound for each row (Hamerly's idea), so that memory does not depend on k_n.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "contest.hpp"
#include "neighborhood.hpp"

namespace k2 {

// Nobody else in its list is nearer to a row than its bound. Rows it cannot skip are measured against the whole list
// at once, as a tile, unless the sorted gaps leave only a few candidates.
template <class T>
class RowBound {
 public:
  RowBound(std::size_t n, std::size_t k, std::size_t width, int workers)
      : width_(width),
        lower_(n, 0.0f),
        upper_(n, std::numeric_limits<float>::infinity()),
        scratch_(static_cast<std::size_t>(workers), Scratch(k)) {}

  void forget(Row i) {
    lower_[i] = 0.0f;
    upper_[i] = std::numeric_limits<float>::infinity();
  }

  Assigned operator()(const View<T>& view, const Neighborhood& near, std::span<const Row> rows, int worker) {
    const Slack slack = Slack::of<T>(view.x.d);
    const std::size_t few = width_ / 3;  // candidates up to which one by one beats a tile
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    s.many.clear();
    s.places.of(near.before);
    const double lost = farthest_drift(near), entrant = nearest_entrant(near, s.places);
    const double half = width_ > 1 ? near.gaps[1] / 2 : std::numeric_limits<double>::infinity();

    Assigned out;
    for (const Row i : rows) {
      const double before = upper_[i], upper = upper_[i] = Slack::up(before + near.drift[near.ids[0]]);
      const double lower = lower_[i] = Slack::down(std::min(lower_[i] - lost, entrant - upper));
      const double needed = std::max(lower, half);
      check_list(view.x[i], view.centers, near.ids, [&](std::size_t) { return lower; }, upper);
      if (upper < needed) continue;
      if (before >= needed && near.gaps[few] <= 2 * before) {  // its own distance alone would hardly save it
        s.many.push_back(i);
        continue;
      }
      Contest<T> contest(view.centers, view.x[i], near.ids[0]);
      const double own = upper_[i] = slack.above(contest.enter(near.ids[0]));
      ++out.ops.distances;
      if (own < needed) continue;
      if (near.gaps[few] <= 2 * own) {
        s.many.push_back(i);
      } else {
        out += one_by_one(contest, i, own, near, view.labels);
      }
    }
    if (!s.many.empty()) out += all_at_once(view, near, s);
    return out;
  }

 private:
  struct Scratch {
    explicit Scratch(std::size_t k) : places(k) {}
    Places places;
    std::vector<Row> many;
    Panels<T> panels;
    PanelSearch<T> search;
  };

  static double farthest_drift(const Neighborhood& near) {
    double most = 0.0;
    for (const Label j : near.before) {
      if (j != near.ids[0]) most = std::max(most, near.drift[j]);
    }
    return most;
  }

  // The bound says nothing of centers that were not in the list before: the nearest of them, seen from l.
  static double nearest_entrant(const Neighborhood& near, const Places& before) {
    for (std::size_t p = 1; p < near.ids.size(); ++p) {
      if (before[near.ids[p]] < 0) return near.gaps[p];
    }
    return std::numeric_limits<double>::infinity();
  }

  Assigned one_by_one(Contest<T>& contest, Row i, double own, const Neighborhood& near, std::span<Label> labels) {
    const Slack slack = Slack::of<T>(contest.dimension());
    double upper = own, others = std::numeric_limits<double>::infinity();
    Assigned out;
    for (std::size_t p = 1; p < width_; ++p) {
      if (near.gaps[p] > own + upper) {  // sorted by gap: nobody further can win (Alg. 1, line 11)
        others = std::min(others, near.gaps[p] - own);
        break;
      }
      others = std::min<double>(others, slack.below(contest.enter(near.ids[p])));
      upper = slack.above(contest.square());
      ++out.ops.distances;
    }
    out.moved = settle(i, contest.best(), upper, others, near, labels);
    return out;
  }

  Assigned all_at_once(const View<T>& view, const Neighborhood& near, Scratch& s) {
    constexpr std::size_t kBlock = PanelSearch<T>::kBlock;
    const T* rows[kBlock];
    Found found[kBlock];
    s.panels.pack(view.panels, near.ids);
    Assigned out;
    for (std::size_t a = 0; a < s.many.size(); a += kBlock) {
      const std::size_t m = std::min(kBlock, s.many.size() - a);
      for (std::size_t i = 0; i < m; ++i) rows[i] = view.x[s.many[a + i]];
      s.search(s.panels, rows, m, [&](std::size_t) { return near.ids[0]; }, found);
      for (std::size_t i = 0; i < m; ++i) {
        const double upper = Slack::up(std::sqrt(std::max(0.0, found[i].nearest)));
        const double others = std::sqrt(std::max(0.0, found[i].others));
        out.moved += settle(s.many[a + i], found[i].label, upper, others, near, view.labels);
      }
      out.ops.distances += m * width_;
    }
    return out;
  }

  bool settle(Row i, Label best, double upper, double others, const Neighborhood& near, std::span<Label> labels) {
    const bool moves = best != near.ids[0];
    labels[i] = best;
    upper_[i] = static_cast<float>(upper);
    lower_[i] = moves ? 0.0f : Slack::down(others);  // it was about the list of the old center
    return moves;
  }

  std::size_t width_;
  std::vector<float> lower_, upper_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
