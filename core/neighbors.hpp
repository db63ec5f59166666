// The k_n nearest centers of every center (Algorithm 1, line 6): exact, self first, then by distance.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "distance.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

struct Neighbors {
  std::size_t width = 0;         // k_n
  std::vector<Label> id;         // k x k_n
  std::vector<double> distance;  // k x k_n, ascending in each row
  std::span<const Label> ids(std::size_t l) const { return {id.data() + l * width, width}; }
  const double* distances(std::size_t l) const { return distance.data() + l * width; }
};

// A center that went elsewhere now stands beside another, beside[l] beside l: it takes a place on a list that has that
// one, but not the place of `kept`. Such a list has no order.
inline void give_place(std::span<Label> list, std::span<const Label> beside, Label kept = kUnassigned) {
  const std::size_t size = list.size();
  for (std::size_t m = 0; size > 1 && m < size; ++m) {
    const Label added = beside[static_cast<std::size_t>(list[m])];
    if (added == kUnassigned || std::find(list.begin(), list.end(), added) != list.end()) continue;
    const std::size_t before = (m + size - 1) % size, after = (m + 1) % size;
    const std::size_t place = list[before] != kept ? before : after;
    if (place != m && list[place] != kept) list[place] = added;
  }
}

// Keeps those of a stream of (lower, upper) intervals that may be among the `wanted` smallest.
template <class T>
class Shortlist {
 public:
  struct Entry {
    T low, high;
    Label id;
  };

  // Of the packed center in this slot, whose score for a row of this norm is at least `low`.
  static Entry entry(const Panels<T>& panels, T low, std::size_t slot, T norm) {
    const double high = panels.upper(low, slot, norm);
    return {low, T(high + 4 * kUnit<T> * std::abs(high)), panels.id(slot)};
  }

  // `limit`: the `wanted` smallest are known to be no larger.
  void start(std::size_t wanted, T limit) {
    wanted_ = wanted;
    limit_ = limit;
    full_ = 2 * wanted + 32;
    kept_.clear(), kept_.reserve(full_);  // there is one for each center: no more than needed
  }
  T limit() const { return limit_; }
  bool admits(T low) const { return low <= limit_; }
  void add(const Entry& entry) {
    kept_.push_back(entry);
    if (kept_.size() >= full_) tighten();
  }
  std::vector<Entry>& finish() {
    if (kept_.size() > wanted_) tighten();
    return kept_;
  }

 private:
  void tighten() {
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1);
    std::nth_element(kept_.begin(), last, kept_.end(), [](const Entry& a, const Entry& b) { return a.high < b.high; });
    limit_ = std::min(limit_, last->high);
    std::erase_if(kept_, [this](const Entry& e) { return e.low > limit_; });
    full_ = std::max(full_, 2 * kept_.size());  // ties cannot be told apart: wait until there are twice as many
  }

  std::size_t wanted_ = 0, full_ = 0;
  T limit_ = 0;
  std::vector<Entry> kept_;
};

// Those of a shortlist that are nearest to center l, by their exact distance; l itself comes first.
class Ranking {
 public:
  template <class T>
  void operator()(const Centers<T>& centers, std::size_t l, const std::vector<typename Shortlist<T>::Entry>& shortlist,
                  std::size_t width) {
    const Kernels<T>& kernel = kernels<T>();
    ranked_.assign(1, {-1.0, static_cast<Label>(l)});  // also if it was crowded out by twins of itself
    for (const auto& e : shortlist) {
      const auto j = static_cast<std::size_t>(e.id);
      if (j != l) ranked_.emplace_back(kernel.squared_distance(centers[l], centers[j], centers.d), e.id);
    }
    const auto end = ranked_.begin() + static_cast<std::ptrdiff_t>(width);
    std::nth_element(ranked_.begin(), end - 1, ranked_.end());
    std::sort(ranked_.begin(), end - 1);
  }
  Label id(std::size_t s) const { return ranked_[s].second; }
  double square(std::size_t s) const { return ranked_[s].first; }

 private:
  std::vector<std::pair<double, Label>> ranked_;
};

// Not less than the norm of center l.
template <class T>
T norm_above(const Centers<T>& centers, std::size_t l) {
  return T(std::sqrt(static_cast<double>(kernels<T>().square(centers[l], centers.d))) *
           (1 + difference_error<T>(centers.d)));
}

// Finds them all. Products of centers are symmetric: a block of centers is multiplied only with those from itself on,
// and what is found is offered to both. The outcome does not depend on who offers first.
template <class T>
class NeighborSearch {
 public:
  // `before`: neighbors found earlier (same k_n), or none. They tell how far to look.
  void operator()(const Centers<T>& centers, std::size_t width, const Neighbors& before, Neighbors& out, Pool& pool) {
    const std::size_t k = centers.k;
    panels_.pack({centers.value.data(), k, centers.d}, nullptr, pool);
    const std::size_t padded = panels_.panels() * panels_.width();
    lists_.resize(k), norm_.assign(padded, T(0)), zeros_.assign(kCenters, T(0));
    if (limit_.size() != k) limit_ = std::vector<Changing<T>>(k);
    scratch_.resize(static_cast<std::size_t>(pool.size()));
    out.width = width;
    out.id.resize(k * width), out.distance.resize(k * width);

    pool.for_chunks(k, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      for (std::size_t l = a; l < b; ++l) norm_[l] = norm_above(centers, l);
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      before.id.empty() ? start(centers, width, a, b, s) : start(centers, before, a, b);
    });
    pool.for_chunks(k, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      multiply(centers, a, b, scratch_[static_cast<std::size_t>(worker)]);
    });
    pool.for_chunks(k, kBlock, [&](std::size_t a, std::size_t b, int) {
      Ranking ranking;
      for (std::size_t l = a; l < b; ++l) finish(centers, l, ranking, out);
    });
  }

  const Panels<T>& panels() const { return panels_; }  // of the centers it was asked about last

 private:
  static constexpr std::size_t kBlock = 24, kCenters = 256;
  static constexpr std::size_t kAround = 128;  // names

  struct Scratch {
    std::vector<T> dots, below;  // below: the limits of centers, negated
    std::vector<double> highs;
    std::vector<std::int32_t> found;
  };

  void admit(std::size_t l, std::size_t width, double limit) {
    lists_[l].start(width, T(limit));
    limit_[l].set(T(limit));
  }

  // The k_n-th neighbor is not farther than the farthest of those found before.
  void start(const Centers<T>& centers, const Neighbors& before, std::size_t a, std::size_t b) {
    const double error = difference_error<T>(centers.d), lost = underflow<T>(centers.d);
    const double blur = 4 * error + 16 * kUnit<T>;
    for (std::size_t l = a; l < b; ++l) {
      double most = 0.0;
      for (const Label j : before.ids(l)) {
        most = std::max(most,
                        static_cast<double>(kernel_.near(centers[l], centers[static_cast<std::size_t>(j)], centers.d)));
      }
      const double far = most * (1 + 2 * error) + lost, square = static_cast<double>(norm_[l]) * norm_[l];
      admit(l, before.width, (far - square) + (far + square) * blur + 8 * lost);
    }
  }

  // Nothing found before: it is not farther than the k_n-th of those with near names. GDI names its clusters in the
  // order of its tree.
  void start(const Centers<T>& centers, std::size_t width, std::size_t a, std::size_t b, Scratch& s) {
    const std::size_t panel = panels_.width(), around = std::max(kAround, 4 * width);
    const std::size_t count = std::min(around / panel + 1, panels_.panels()), stride = count * panel;
    const std::size_t from = std::min((a - std::min(a, around / 2)) / panel, panels_.panels() - count);
    const std::size_t first = from * panel;
    const T *x[kBlock], *base = panels_.base(), *slack = panels_.slack();
    for (std::size_t l = a; l < b; ++l) x[l - a] = centers[l];
    grow(s.dots, kBlock * stride);
    panels_.dots(x, b - a, from, count, s.dots.data(), stride);
    for (std::size_t l = a; l < b; ++l) {
      const T* dot = s.dots.data() + (l - a) * stride;
      s.highs.clear();
      for (std::size_t j = first; j < std::min(centers.k, first + stride); ++j) {
        s.highs.push_back(panels_.upper(base[j] - 2 * dot[j - first] - norm_[l] * slack[j], j, norm_[l]));
      }
      const auto last = s.highs.begin() + static_cast<std::ptrdiff_t>(width - 1);
      std::nth_element(s.highs.begin(), last, s.highs.end());
      admit(l, width, *last + 16 * kUnit<T> * std::abs(*last));
    }
  }

  // The centers [a, b) with all from a on.
  void multiply(const Centers<T>& centers, std::size_t a, std::size_t b, Scratch& s) {
    const std::size_t width = panels_.width(), group = kCenters / width;
    const T *x[kBlock], *base = panels_.base(), *slack = panels_.slack();
    for (std::size_t l = a; l < b; ++l) x[l - a] = centers[l];
    grow(s.dots, kBlock * kCenters), grow(s.found, kCenters);
    for (std::size_t p = a / width; p < panels_.panels(); p += group) {
      const std::size_t count = std::min(group, panels_.panels() - p), first = p * width;
      panels_.dots(x, b - a, p, count, s.dots.data(), kCenters);
      s.below.assign(count * width, std::numeric_limits<T>::infinity());
      for (std::size_t j = first; j < std::min(centers.k, first + count * width); ++j) {
        s.below[j - first] = -limit_[j].get();
      }
      for (std::size_t l = a; l < b; ++l) {
        const T* dot = s.dots.data() + (l - a) * kCenters;
        // What passes has score + square < 0: here that is, a score below the limit of l,
        const Gate<T> to_l{base + first, slack + first, zeros_.data(), zeros_.data(), norm_[l], -limit_[l].get(), 0, 0};
        for (const auto e : passing(to_l, dot, count * width, s)) {
          const std::size_t j = first + static_cast<std::size_t>(e);
          if (j >= a) offer(l, j, base[j] - 2 * dot[e] - norm_[l] * slack[j]);
        }
        // and here, below the limit of the other. Those of its own block see l themselves.
        const Gate<T> from_l{
            s.below.data(), norm_.data() + first, zeros_.data(), zeros_.data(), slack[l], base[l], 0, 0};
        for (const auto e : passing(from_l, dot, count * width, s)) {
          const std::size_t j = first + static_cast<std::size_t>(e);
          if (j >= b) offer(j, l, base[l] - 2 * dot[e] - norm_[j] * slack[l]);
        }
      }
    }
  }

  std::span<const std::int32_t> passing(const Gate<T>& gate, const T* dots, std::size_t count, Scratch& s) const {
    return {s.found.data(), kernel_.survivors(dots, gate, count, s.found.data())};
  }

  void offer(std::size_t l, std::size_t j, T low) {
    Locks::Guard guard(locks_, l);
    if (!lists_[l].admits(low)) return;
    lists_[l].add(Shortlist<T>::entry(panels_, low, j, norm_[l]));
    limit_[l].set(lists_[l].limit());
  }

  void finish(const Centers<T>& centers, std::size_t l, Ranking& ranking, Neighbors& out) {
    ranking(centers, l, lists_[l].finish(), out.width);
    for (std::size_t s = 0; s < out.width; ++s) {
      out.id[l * out.width + s] = ranking.id(s);
      out.distance[l * out.width + s] = s == 0 ? 0.0 : std::sqrt(ranking.square(s));
    }
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Panels<T> panels_;
  Locks locks_;
  std::vector<Shortlist<T>> lists_;
  std::vector<Changing<T>> limit_;  // what each list admits, read without its lock: so perhaps not the last
  std::vector<T> norm_, zeros_;     // of each center
  std::vector<Scratch> scratch_;
};

}  // namespace k2
