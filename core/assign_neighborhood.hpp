// k²-means' assignment (Algorithm 1, lines 5-12): a row looks only at the k_n centers nearest to its own center.
//
// Two ways to skip most of those. SlotBounds is the paper's: one lower bound for each row and place in its list.
// RowBound keeps one for the whole list (Hamerly's idea), so that its memory does not depend on k_n.
// Both skip only what is strictly farther, so the outcome is the nearest center of the list, whatever the bounds.
#pragma once

#include <limits>
#include <vector>

#include "assign_exhaustive.hpp"
#include "contest.hpp"
#include "groups.hpp"
#include "neighbors.hpp"

namespace k2 {

// What an iteration works on.
template <class T>
struct View {
  Rows<const T> x;
  const Centers<T>& centers;
  const Panels<T>& panels;  // all the centers, packed
  const Neighbors& graph;
  std::span<Label> labels;
};

// One cluster in one iteration, as its rows see it.
struct Neighborhood {
  std::size_t center;             // l
  std::span<const Label> ids;     // N(l), self first
  const double* gaps;             // ||c_l - c_j||, ascending
  std::span<const Label> before;  // N(l) one iteration ago; empty at first
  const double* drift;            // of all centers, since then
};

// Where a center stands in a list, by its name.
class Places {
 public:
  explicit Places(std::size_t k) : place_(k, -1) {}
  void of(std::span<const Label> ids) {
    for (const Label j : listed_) place_[static_cast<std::size_t>(j)] = -1;
    listed_.assign(ids.begin(), ids.end());
    for (std::size_t s = 0; s < ids.size(); ++s) place_[static_cast<std::size_t>(ids[s])] = static_cast<int>(s);
  }
  int operator[](Label j) const { return place_[static_cast<std::size_t>(j)]; }  // -1: not in the list

 private:
  std::vector<int> place_;
  std::vector<Label> listed_;
};

// The n x k_n lower bounds of the paper. Places in a list are not identities: when a list changes, or a row changes
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
      upper = slack.above(contest.distance());
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

// One lower bound a row: nobody else in its list is nearer than that. Rows it cannot skip are measured against the
// whole list at once, as a tile, unless the sorted gaps leave only a few candidates.
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
      const double before = upper_[i], upper = upper_[i] = Slack::up(before + near.drift[near.center]);
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
      upper = slack.above(contest.distance());
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

template <class T, class Bounds>
class AssignNeighborhood {
 public:
  AssignNeighborhood(std::size_t n, std::size_t k, std::size_t neighbors, int workers)
      : width_(std::min(neighbors, k)), bounds_(n, k, width_, workers) {}

  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    if (labels[0] == kUnassigned) return exhaustive_(x, centers, labels, pool);  // k² needs labels to start

    std::swap(graph_, before_);
    find_neighbors(centers, width_, before_, panels_, graph_, pool);
    groups_.sort(labels, centers.k, kPiece);
    const View<T> view{x, centers, panels_, graph_, labels};
    Assigned out = pool.tally<Assigned>(groups_.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const Groups::Piece& piece = groups_.pieces()[p];
      const std::size_t l = piece.cluster;
      const Neighborhood near{l, graph_.ids(l), graph_.distances(l),
                              before_.id.empty() ? std::span<const Label>{} : before_.ids(l), centers.drift.data()};
      return bounds_(view, near, groups_.rows(piece), worker);
    });
    out.ops.distances += static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
    return out;
  }

  void forget(Row i) { bounds_.forget(i); }

 private:
  static constexpr std::size_t kPiece = 192;  // rows of a cluster that are one piece of work

  std::size_t width_;
  Bounds bounds_;
  Neighbors graph_, before_;
  Panels<T> panels_;
  Groups groups_;
  Exhaustive<T> exhaustive_;
};

}  // namespace k2
