// Assignment pruned by sketches: few distances are measured, and none that could win is missed.
//
// An iteration is done in turns, and the centers move between them. At first a row looks at the centers near its own,
// as in k²-means, or at those on its own list (own_lists.hpp), with Hartigan's comparison (weighing.hpp). When few rows
// move, a turn is given to swaps of clusters (swaps.hpp), again and again while that saves enough; later the comparison
// becomes the plain one. When none moves, rows look at all centers that are within reach: if nothing moves then, every
// row has its nearest center.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "center_graph.hpp"
#include "groups.hpp"
#include "news.hpp"
#include "own_lists.hpp"
#include "own_search.hpp"
#include "sketch_search.hpp"
#include "swaps.hpp"
#include "types.hpp"

namespace k2 {

struct SketchOptions {
  std::size_t neighbors;  // centers near its own that a row looks at
  std::size_t turns;      // parts of an iteration
  bool hartigan;          // begin with Hartigan's comparison
  bool swaps = true;      // of clusters, while the comparison is Hartigan's
  bool exact = true;      // end only when no row would change among all centers
  bool unit = false;      // centers on the unit sphere
  bool lists = false;     // a row looks at those on its own list, and not at neighbors of its center
};

template <class T>
class AssignSketched {
 public:
  AssignSketched(std::size_t k, SketchSearch<T> search, const SketchOptions& options)
      : options_(options),
        narrow_(options.lists || options.neighbors < k),
        mode_(!options.hartigan ? Mode::plain
              : options.swaps   ? Mode::hartigan
                                : Mode::late),
        search_(std::move(search)),
        graph_(options.neighbors),
        lists_(options.turns),
        news_(k, options.turns) {}

  // The rows whose turn it is.
  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    before_.assign(labels.begin(), labels.end());
    if (turn_ == 0 && looked_at_all_) mode_ = Mode::plain, looked_at_all_ = false;
    const bool first = labels[0] == kUnassigned;
    weighed_ = mode_ != Mode::plain && mode_ != Mode::exact && !first;
    search_.prepare(centers, labels, weighed_, pool);
    news_.begin(centers.drift);
    Assigned out;
    swapped_ = mode_ == Mode::swaps && swap_clusters(x, centers.k, labels, out, pool);
    if (!swapped_) out += look(x, centers, labels, first, pool);
    mode_ == Mode::exact ? news_.looked(turn_) : news_.joined(labels, before_);
    moved_ += out.moved;
    if (++turn_ == options_.turns) {
      looked_at_all_ = mode_ == Mode::exact;
      const auto n = static_cast<std::int64_t>(x.n);
      if (mode_ == Mode::hartigan && moved_ * kBeforeSwaps <= n) mode_ = Mode::swaps;
      if (mode_ == Mode::late && moved_ * kBeforePlain <= n) mode_ = Mode::plain;
      lists_.end_iteration(moved_);
      turn_ = 0, moved_ = 0;
    }
    return out;
  }

  // All rows, all centers, the plain comparison. `afresh`: ties as if no row had a label, so as `predict` decides them.
  Assigned settle(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, bool afresh, Pool& pool) {
    weighed_ = false;
    search_.prepare(centers, labels, weighed_, pool);
    return over_all(x, centers, labels, 1, false, afresh, pool);
  }

  // How many rows sketches prove to have the nearest of all centers; nothing changes.
  std::size_t certify(Rows<const T> x, const Centers<T>& centers, std::span<const Label> labels, Pool& pool) {
    search_.prepare(centers, labels, false, pool);
    groups_.sort(labels, centers.k, kPiece, pool);
    return pool.tally<std::size_t>(groups_.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const auto& piece = groups_.pieces()[p];
      const auto rows = groups_.rows(piece);
      Ops ops;  // nobody asks for them
      const auto& near = search_.within_reach(centers, rows, piece.cluster, worker, ops);
      return search_.prove(x, centers, labels, rows, near, worker);
    });
  }

  // The mode as a number, and the graph or the lists, for a run that is interrupted between two iterations and taken up
  // again.
  int mode() const { return looked_at_all_ ? static_cast<int>(Mode::plain) : static_cast<int>(mode_); }
  std::vector<Label> known() const { return options_.lists ? lists_.saved() : graph_.saved(); }
  void enter(int mode, std::span<const Label> known, std::size_t n) {
    if (mode != 0) mode_ = static_cast<Mode>(mode);
    options_.lists ? lists_.restore(known, n) : graph_.restore(known);
  }

  // Nothing moves: go on more strictly, if that is possible.
  bool advance() {
    if (mode_ == Mode::exact) return false;
    if (options_.lists && lists_.look_around_first()) return true;
    if (mode_ == Mode::plain && (!narrow_ || !options_.exact)) return false;
    if (mode_ != Mode::swaps) mode_ = mode_ == Mode::plain ? Mode::exact : Mode::plain;
    return true;
  }

  // Whether the last turn compared as Hartigan does; only then can it have raised the energy.
  bool weighed() const { return weighed_; }

  // The energy has risen, as it may when many rows move at once: take the turn back, and compare plainly from now on.
  // Swaps that raised it, which only rounding can do, are not tried again.
  void undo(std::span<Label> labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == before_[i]) continue;
      labels[i] = before_[i];
      forget(static_cast<Row>(i));
    }
    mode_ = swapped_ ? Mode::late : Mode::plain;
  }

  void forget(Row i) { search_.forget(i); }

 private:
  // In checkpoints. Hartigan's comparison is made in the first, in `swaps`, when they are next, and in `late`.
  enum class Mode { hartigan, plain, exact, swaps, late };
  static constexpr std::int64_t kBeforeSwaps = 20, kBeforePlain = 1000;  // at most one row in so many moves
  static constexpr double kSwapsSave = 0.0001;  // of the energy, at least; else they are not tried again
  static constexpr std::size_t kMany = 256;     // centers, from which on it pays to ask which are within reach
  static constexpr std::size_t kNews = 512;     // centers, up to which those that changed are looked at alone
  static constexpr double kRecall = 0.8, kLateRecall = 0.95;  // of the true neighbors; late: swaps are over

  // Whether it saved enough. If not, nothing has changed, and it is not tried again.
  bool swap_clusters(Rows<const T> x, std::size_t k, std::span<Label> labels, Assigned& out, Pool& pool) {
    ClusterSwaps<T> swap(x, search_.weights(), k, 0);
    const bool enough = swap(labels, pool) >= kSwapsSave;
    out.ops += swap.ops();
    mode_ = enough ? Mode::hartigan : Mode::late;
    if (enough) lists_.add(swap.beside(), pool);
    if (!enough) std::copy(before_.begin(), before_.end(), labels.begin());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] != before_[i]) search_.forget(static_cast<Row>(i)), ++out.moved;
    }
    return enough;
  }

  // The rows whose turn it is look at the centers near their own, or at all.
  Assigned look(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, bool first, Pool& pool) {
    Assigned out;
    std::uint64_t for_graph = 0;
    if (first || mode_ == Mode::exact || !narrow_) {
      const bool again = mode_ == Mode::exact && news_.has_looked(turn_);
      const auto changed = again ? news_.since(turn_) : std::span<const Label>();
      if (again && changed.empty()) return out;
      const bool few = again && changed.size() <= kNews;
      if (few) changed_.pack(search_.all(), changed);
      out = over_all(x, centers, labels, first ? 1 : options_.turns, few, false, pool);
    } else if (options_.lists) {
      out = over_lists(x, centers, labels, pool);
    } else {
      const double enough = mode_ == Mode::hartigan ? kRecall : kLateRecall;
      if (turn_ == 0 || graph_.empty()) for_graph = graph_.follow(centers, enough, pool);
      out = over_pieces(x, centers, labels, options_.turns, false, pool,
                        [&](const auto& piece, int worker, Ops&) -> auto& {
                          return search_.listed(graph_.ids(piece.cluster), worker);
                        });
    }
    if (!options_.lists) search_.judge_sketches(out.ops, x.d);
    out.ops.distances += for_graph;
    return out;
  }

  // If their lists are due, they find new ones first.
  Assigned over_lists(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    const Turn turn{x.n, options_.turns, turn_};
    auto look = [&, own = OwnSearch<T>(search_, lists_)](auto rows) { return own(x, centers, labels, rows); };
    Assigned out;
    if (lists_.due(turn_)) {
      out = lists_.sweep({search_.sketches(x), search_.all().panels, labels, turn}, groups_, pool, look);
    } else {
      groups_.sort(turn, labels, centers.k, kPiece, pool);
      out = pool.tally<Assigned>(groups_.order().size(), kPiece, [&](std::size_t a, std::size_t b, int) {
        return look(groups_.order().subspan(a, b - a));
      });
    }
    out.ops.products = search_.whole_rows(out.ops.products, x.d);
    return out;
  }

  // `few`: the centers that changed since these rows looked at all are so few that it pays to look at them alone.
  Assigned over_all(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, std::size_t turns, bool few,
                    bool afresh, Pool& pool) {
    constexpr std::size_t kBlock = SketchSearch<T>::kBlock;
    if (labels[0] == kUnassigned) {
      return pool.tally<Assigned>(x.n, kBlock, [&](std::size_t a, std::size_t b, int worker) {
        Row rows[kBlock];
        std::iota(rows, rows + (b - a), static_cast<Row>(a));
        return search_.look(x, centers, labels, {rows, b - a}, search_.all(), afresh, worker);
      });
    }
    if (centers.k >= kMany && !weighed_) {
      return over_pieces(x, centers, labels, turns, afresh, pool,
                         [&](const auto& piece, int worker, Ops& ops) -> auto& {
                           if (few && !news_.changed(piece.cluster, turn_)) return std::as_const(changed_);
                           return search_.within_reach(centers, groups_.rows(piece), piece.cluster, worker, ops);
                         });
    }
    // Rows of a cluster together: they measure the same centers.
    groups_.sort({x.n, turns, turn_}, labels, centers.k, x.n, pool);
    return pool.tally<Assigned>(groups_.order().size(), kBlock, [&](std::size_t a, std::size_t b, int worker) {
      return search_.look(x, centers, labels, groups_.order().subspan(a, b - a), search_.all(), afresh, worker);
    });
  }

  // The rows of a cluster together, with the centers that choose(piece, worker, ops) packs for them.
  template <class Choose>
  Assigned over_pieces(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, std::size_t turns,
                       bool afresh, Pool& pool, Choose&& choose) {
    groups_.sort({x.n, turns, turn_}, labels, centers.k, kPiece, pool);
    return pool.tally<Assigned>(groups_.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const Groups::Piece& piece = groups_.pieces()[p];
      Assigned out;
      const auto& packed = choose(piece, worker, out.ops);
      return out += search_.look(x, centers, labels, groups_.rows(piece), packed, afresh, worker);
    });
  }

  SketchOptions options_;
  bool narrow_;  // rows look at some of the centers
  Mode mode_;
  bool looked_at_all_ = false, weighed_ = false, swapped_ = false;  // the last of the turn before
  std::size_t turn_ = 0;
  std::int64_t moved_ = 0;  // in the turns of this iteration
  SketchSearch<T> search_;
  std::vector<Label> before_;  // labels before this turn
  CenterGraph<T> graph_;
  OwnLists<T> lists_;
  Groups groups_;
  News news_;
  Packed<T> changed_;  // the centers that are news to the rows whose turn it is, if they are few
};

}  // namespace k2
