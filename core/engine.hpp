// An engine is one method bound to one dataset: pick rows, assign, move; one step at a time.
#pragma once

#include <memory>
#include <utility>

#include "distance.hpp"
#include "measure.hpp"
#include "move.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
struct Problem {
  Rows<const T> x;
  const double* weights;              // n, all positive; or null
  Rows<const T> centers;              // where to start
  const Label* labels;                // n; or null, if the initialisation gives none
  double tol = 0.0;                   // a shift up to this counts as none
  int mode = 0;                       // where an interrupted run of several modes was
  std::span<const Label> known = {};  // the neighbors or the lists it had, if it went by them
};

// What module.cpp sees of every engine.
template <class T>
class AnyEngine {
 public:
  virtual ~AnyEngine() = default;
  virtual Step step() = 0;               // one iteration
  virtual Step settle(bool afresh) = 0;  // one more assignment; the centers stay
  virtual double energy() = 0;           // of the labels and centers as they are after a step
  virtual std::size_t certify() = 0;     // rows that certainly have their nearest center, if the method can tell
  virtual int mode() const = 0;          // of a method that has several: the one it is in
  virtual std::vector<Label> known() const = 0;  // neighbors or lists that the next step begins with; or none
  // Swaps of clusters, if the method leaves it to its caller when: the share of the energy that is saved.
  virtual double swap(std::uint64_t seed, Ops& ops) = 0;
  virtual const Centers<T>& centers() const = 0;
  virtual std::span<const Label> labels() const = 0;
};

template <class T, class Pick, class Assign, class Move>
class Engine final : public AnyEngine<T> {
 public:
  Engine(const Problem<T>& p, Pick pick, Assign assign, Move move, std::unique_ptr<Pool> pool)
      : tol_(p.tol),
        x_(p.x),
        weights_(p.weights),
        centers_(p.centers.data, p.centers.n, p.centers.d),
        labels_(p.x.n, kUnassigned),
        pool_(std::move(pool)),
        pick_(std::move(pick)),
        assign_(std::move(assign)),
        move_(std::move(move)) {
    if (p.labels) labels_.assign(p.labels, p.labels + p.x.n);
    if constexpr (kGuarded) {
      assign_.enter(p.mode, p.known, p.x.n);
      if (!p.labels) return;
      begun_.additions = move_.count_moves(x_, std::span<const Label>(labels_), *pool_);
      energy_ = move_.energy(centers_, *pool_);
    }
  }

  Step step() override {
    Step out = iterate();
    if constexpr (kGuarded) {
      out.ops += std::exchange(begun_, Ops());
      while (out.shift <= tol_ && assign_.advance()) {
        const Step more = iterate();
        out.ops += more.ops, out.moved += more.moved, out.shift = more.shift;
      }
    }
    return out;
  }

  Step settle(bool afresh) override {
    Assigned assigned;
    (void)afresh;  // others break ties in one way only
    if constexpr (kGuarded) {
      assigned = assign_.settle(x_, centers_, std::span<Label>(labels_), afresh, *pool_);
    } else {
      assigned = assign_(x_, centers_, std::span<Label>(labels_), *pool_);
    }
    return {assigned.ops, assigned.moved, 0.0};
  }

  double energy() override {
    if constexpr (Pick::kAll) {
      return move_.energy(centers_, *pool_);
    } else {  // batches leave most labels behind: bring them up to the centers, at nobody's charge
      settle(false);
      return energy_of(x_, weights_, {centers_.value.data(), centers_.k, centers_.d}, labels_.data(), *pool_);
    }
  }
  std::size_t certify() override {
    if constexpr (kGuarded) return assign_.certify(x_, centers_, std::span<const Label>(labels_), *pool_);
    return 0;
  }
  int mode() const override {
    if constexpr (kGuarded) return assign_.mode();
    return 0;
  }
  std::vector<Label> known() const override {
    if constexpr (kGuarded) return assign_.known();
    return {};
  }
  double swap(std::uint64_t seed, Ops& ops) override {
    if constexpr (requires { assign_.swap(x_, centers_.k, std::span<Label>(labels_), seed, ops, *pool_); }) {
      const double saved = assign_.swap(x_, centers_.k, std::span<Label>(labels_), seed, ops, *pool_);
      if (saved > 0) ops += move_(x_, std::span<Label>(labels_), centers_, *pool_).ops;
      return saved;
    }
    return 0.0;
  }
  const Centers<T>& centers() const override { return centers_; }
  std::span<const Label> labels() const override { return labels_; }

 private:
  // An assignment that may raise the energy can undo it, and can advance to modes that may not.
  static constexpr bool kGuarded = requires(Assign& a, std::span<Label> l) { a.undo(l), a.advance(); };

  Step iterate() {
    Step out;
    for (std::size_t b = 0; b < pick_.batches(); ++b) {
      const Batch<T> batch = pick_(x_, labels_);
      const Assigned assigned = assign_(batch.x, centers_, batch.labels, *pool_);
      Moved moved = move_(batch.x, batch.labels, centers_, *pool_);
      if constexpr (kGuarded) {
        const double energy = move_.energy(centers_, *pool_);
        if (energy > energy_ && assign_.weighed()) {
          out.ops += moved.ops;
          assign_.undo(batch.labels);
          moved = move_(batch.x, batch.labels, centers_, *pool_);
        }
        energy_ = std::min(energy, energy_);  // below it by rounding only, if the turn was not weighed
      }
      for (const Row i : moved.refilled) assign_.forget(i);
      out.ops += assigned.ops;
      out.ops += moved.ops;
      out.moved += assigned.moved + static_cast<std::int64_t>(moved.refilled.size());
      out.shift += moved.shift;
    }
    return out;
  }

  Ops begun_;  // of what was done before the first step
  double tol_, energy_ = std::numeric_limits<double>::infinity();
  Rows<const T> x_;
  const double* weights_;
  Centers<T> centers_;
  Large<Label> labels_;
  std::unique_ptr<Pool> pool_;
  Pick pick_;
  Assign assign_;
  Move move_;
};

}  // namespace k2
