// Each row's own list of centers: the few nearest that it found when it last looked around (a sweep). Iterations over
// lists cost the same whatever the number of clusters, and they serve rows far from their center, to which its
// neighbors say little.
//
// In a sweep, rows look at the middles of the groups of centers near their own center's group, and at the centers of
// those groups whose middles are nearest. Products alone rank them: they only say who is on the list, and as nothing is
// fused, they say the same on every CPU. An audit tells how many rows have the nearest of all centers on their list,
// and so how many groups to ask.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "center_groups.hpp"
#include "distance.hpp"
#include "groups.hpp"
#include "large.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class OwnLists {
 public:
  static constexpr std::size_t kLength = 8;  // centers on a list

  explicit OwnLists(std::size_t turns) : due_(turns, 1) {}

  std::size_t length() const { return length_; }
  const Label* of(Row i) const { return ids_.data() + i * length_; }

  // ---- when to look around

  void renew() { std::fill(due_.begin(), due_.end(), 1); }
  bool due(std::size_t turn) const { return due_[turn] != 0; }

  // New lists are due when few of the rows move that moved when they were new.
  void end_iteration(std::int64_t moved) {
    if (swept_) {
      moved_then_ = moved;
    } else if (moved * kFewer < moved_then_) {
      renew();
    }
    fresh_ = std::exchange(swept_, false);
  }

  // For each center the one that went elsewhere and now stands beside it.
  void add(std::span<const Label> beside, Pool& pool) {
    if (length_ < 2) return;
    pool.for_chunks(ids_.size() / length_, 4096, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t i = a; i < b; ++i) give_place(std::span(ids_).subspan(i * length_, length_), beside);
    });
  }

  // Nothing moves, but the lists are not new: whether they have been made due.
  bool look_around_first() {
    if (fresh_) return false;
    renew();
    return true;
  }

  // All of it, for a run that is interrupted between two iterations: the lists, and what they are due by.
  std::vector<Label> saved() const {
    if (ids_.empty()) return {};
    std::vector<Label> out(ids_.begin(), ids_.end());
    out.insert(out.end(), due_.begin(), due_.end());
    const auto moved = static_cast<std::uint64_t>(moved_then_);
    out.insert(out.end(), {static_cast<Label>(probes_), fresh_, static_cast<Label>(moved & 0x7fffffff),
                           static_cast<Label>(moved >> 31)});
    return out;
  }
  static std::size_t saved_size(std::size_t n, std::size_t k, std::size_t turns) {
    return n * std::min(kLength, k) + turns + 4;
  }
  void restore(std::span<const Label> saved, std::size_t n) {
    if (saved.empty()) return;
    const auto rest = saved.last(due_.size() + 4), told = rest.last(4);
    length_ = (saved.size() - rest.size()) / n;
    ids_.assign(saved.begin(), saved.end() - static_cast<std::ptrdiff_t>(rest.size()));
    std::copy_n(rest.begin(), due_.size(), due_.begin());
    probes_ = static_cast<std::size_t>(told[0]), fresh_ = told[1] != 0;
    moved_then_ = static_cast<std::int64_t>(told[2]) | static_cast<std::int64_t>(told[3]) << 31;
  }

  // ---- looking around

  // The rows whose turn it is, and what they see: rows x and centers, or sketches of both.
  struct View {
    Rows<const T> x;
    const Panels<T>& centers;
    std::span<const Label> labels;
    Turn turn;
  };

  // New lists for these rows; then look(rows) for all of them, some at a time. `sorted` is scratch.
  template <class Look>
  Assigned look_around(const View& view, Groups& sorted, Pool& pool, Look&& look) {
    const Rows<const T> x = view.x;
    Assigned out;
    out.ops = groups_.form(view.centers, pool);
    length_ = std::min(kLength, view.centers.count());
    ids_.resize(x.n * length_, 0), scratch_.resize(static_cast<std::size_t>(pool.size()));
    sorted.sort(view.turn, Grouped{view.labels, groups_}, groups_.size(), kTogether, pool);
    return out += pool.tally<Assigned>(sorted.pieces().size(), 1, [&](std::size_t p, std::size_t, int worker) {
      const auto rows = sorted.rows(sorted.pieces()[p]);
      const auto near = groups_.near(sorted.pieces()[p].cluster);
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      Assigned part;
      part.ops.products = ask(x, rows, near, s) + answer(x, rows, near, s);
      return part += look(rows);
    });
  }

  // The same, and what is found decides how many groups are asked the next time.
  template <class Look>
  Assigned sweep(const View& view, Groups& sorted, Pool& pool, Look&& look) {
    Assigned out = look_around(view, sorted, pool, look);
    out.ops.products += audit(view.x, view.centers, sorted.order(), pool);
    due_[view.turn.turn] = 0, swept_ = true;
    return out;
  }

 private:
  static constexpr std::size_t kTogether = 256, kBlock = 48;      // rows that look around together; multiplied at once
  static constexpr std::size_t kWidth = CenterGroups<T>::kSize;   // room for the scores of a group
  static constexpr std::size_t kMostProbes = 16;                  // more cost more than they bring
  static constexpr std::size_t kFewAudited = 32, kAudited = 512;  // rows, at least and at most
  static constexpr double kEnough = 0.8;                          // of them must have the nearest of all on their list
  static constexpr std::int64_t kFewer = 3;                       // times fewer rows move: the lists are old

  // The group of each row's center.
  struct Grouped {
    std::span<const Label> labels;
    const CenterGroups<T>& groups;
    Label operator[](std::size_t i) const { return groups.of(labels[i]); }
  };

  struct Scratch {
    Panels<T> middles;
    std::vector<T> dots, scores;
    std::vector<std::int32_t> places;
    std::vector<std::uint32_t> asked, next, askers;  // a group for each row and probe; where its askers are; who
  };

  std::size_t probes(std::span<const Label> near) const { return std::min(probes_, near.size()); }

  // f(r, products) for rows at(0), ..., at(count - 1).
  template <class At, class F>
  void multiply(const Panels<T>& panels, std::size_t count, Scratch& s, At&& at, F&& f) const {
    const std::size_t padded = panels.panels() * panels.width();
    grow(s.dots, kBlock * padded);
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::size_t size = std::min(kBlock, count - first), d = panels.centers().d;
      const T* rows[kBlock];
      for (std::size_t r = 0; r < size; ++r) prefetch_row(rows[r] = at(first + r), d);
      panels.heads(rows, size, s.dots.data(), padded);
      for (std::size_t r = 0; r < size; ++r) f(first + r, s.dots.data() + r * padded);
    }
  }

  // The groups whose middles are nearest to each row, of those near the rows' own group.
  std::uint64_t ask(Rows<const T> x, std::span<const Row> rows, std::span<const Label> near, Scratch& s) const {
    const std::size_t probes = this->probes(near);
    grow(s.asked, rows.size() * probes);
    if (probes == near.size()) {  // all of them
      for (std::size_t q = 0; q < rows.size() * probes; ++q) s.asked[q] = static_cast<std::uint32_t>(q % probes);
      return 0;
    }
    s.middles.pack(groups_.middles(), near);
    const std::size_t padded = s.middles.panels() * s.middles.width();
    grow(s.scores, padded), grow(s.places, padded);
    multiply(
        s.middles, rows.size(), s, [&](std::size_t r) { return x[rows[r]]; },
        [&](std::size_t r, const T* dots) {
          kernel_.scores(dots, s.middles.base(), padded, s.scores.data());
          kernel_.few(s.scores.data(), padded, probes, s.places.data());
          std::copy_n(s.places.begin(), probes, s.asked.begin() + static_cast<std::ptrdiff_t>(r * probes));
        });
    return rows.size() * near.size();
  }

  // Group by group, the scores of its centers for the rows that ask it; then the list of each row.
  std::uint64_t answer(Rows<const T> x, std::span<const Row> rows, std::span<const Label> near, Scratch& s) {
    const std::size_t probes = this->probes(near), questions = rows.size() * probes;
    s.next.assign(near.size() + 1, 0), grow(s.askers, questions), grow(s.scores, questions * kWidth);
    for (std::size_t q = 0; q < questions; ++q) ++s.next[s.asked[q] + 1];
    for (std::size_t e = 0; e < near.size(); ++e) s.next[e + 1] += s.next[e];
    for (std::size_t q = 0; q < questions; ++q) s.askers[s.next[s.asked[q]]++] = static_cast<std::uint32_t>(q);
    std::uint64_t products = 0;
    for (std::size_t e = 0, begin = 0; e < near.size(); begin = s.next[e++]) {
      const Panels<T>& members = groups_.members(static_cast<std::size_t>(near[e]));
      const std::size_t padded = members.panels() * members.width();
      const std::uint32_t* askers = s.askers.data() + begin;
      multiply(
          members, s.next[e] - begin, s, [&](std::size_t r) { return x[rows[askers[r] / probes]]; },
          [&](std::size_t r, const T* dots) {
            T* scores = s.scores.data() + askers[r] * kWidth;
            kernel_.scores(dots, members.base(), padded, scores);
            std::fill(scores + padded, scores + kWidth, std::numeric_limits<T>::infinity());
          });
      products += (s.next[e] - begin) * members.count();
    }
    grow(s.places, probes * kWidth);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      kernel_.few(s.scores.data() + r * probes * kWidth, probes * kWidth, length_, s.places.data());
      for (std::size_t m = 0; m < length_; ++m) {
        const auto place = static_cast<std::size_t>(s.places[m]);
        const auto group = static_cast<std::size_t>(near[s.asked[r * probes + place / kWidth]]);
        ids_[rows[r] * length_ + m] = groups_.members(group).id(place % kWidth);
      }
    }
    return products;
  }

  // How many of some rows have the nearest of all centers on their list? If too few, twice as many groups are asked
  // next; nobody needs to know if there can be no more.
  std::uint64_t audit(Rows<const T> x, const Panels<T>& all, std::span<const Row> order, Pool& pool) {
    if (order.empty() || probes_ >= std::min(kMostProbes, groups_.size())) return 0;
    const std::size_t wanted = std::clamp(order.size() / 64, kFewAudited, kAudited);
    const std::size_t every = (order.size() + wanted - 1) / wanted, audited = (order.size() + every - 1) / every;
    const std::size_t padded = all.panels() * all.width();
    const auto found = pool.tally<std::size_t>(audited, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      grow(s.scores, padded), grow(s.places, padded);
      std::size_t listed = 0;
      multiply(
          all, b - a, s, [&](std::size_t r) { return x[order[(a + r) * every]]; },
          [&](std::size_t r, const T* dots) {
            kernel_.scores(dots, all.base(), padded, s.scores.data());
            kernel_.few(s.scores.data(), padded, 1, s.places.data());
            const Label* list = of(order[(a + r) * every]);
            listed += std::find(list, list + length_, s.places[0]) != list + length_;
          });
      return listed;
    });
    const bool enough = static_cast<double>(found) >= kEnough * static_cast<double>(audited);
    if (!enough) probes_ = std::min(2 * probes_, kMostProbes);
    return audited * all.count();
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::size_t length_ = 0, probes_ = 8;  // probes: groups that a row asks
  Large<Label> ids_;                     // n lists
  std::vector<char> due_;                // by turns: whether its rows are to look around
  bool swept_ = false, fresh_ = false;   // in this iteration; in the one before
  std::int64_t moved_then_ = 0;          // rows, in the iteration of the last sweep
  CenterGroups<T> groups_;
  std::vector<Scratch> scratch_;
};

}  // namespace k2
