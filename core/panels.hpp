// Centers packed for the tile kernel, and the nearest of all of them for any row.
//
// The tile gives score_j = ||c_j||^2 - 2 x.c_j, which ranks the centers of a row, up to an error of at most
// slack_j ||x||. We rank the lower ends of these intervals: if the second lowest lies above the upper end of the
// lowest, the nearest center is certain; otherwise the exact distance decides among all whose interval reaches down.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "distance.hpp"
#include "large.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class Panels {
 public:
  // All centers. `shift` (d values, or null) is taken off centers and rows before they are multiplied: products of
  // vectors far from the origin lose their digits.
  void pack(Rows<const T> centers, const T* shift, Pool& pool) {
    listed_ = {};
    prepare(centers, centers.n, shift);
    const std::vector<T> origin = shift ? std::vector<T>(shift, shift + centers.d) : std::vector<T>(centers.d, T(0));
    pool.for_chunks(panels_, 8, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t p = a; p < b; ++p) transpose(p);
      for (std::size_t s = a * width(); s < std::min(count_, b * width()); ++s) {
        const double square = kernel_.squared_distance(centers[s], origin.data(), centers.d);
        base_[s] = static_cast<T>(square * (1 - 2 * error_) - 4 * underflow<T>(centers.d));
        slack_[s] = static_cast<T>(2 * error_ * std::sqrt(square) * (1 + 4 * kUnit<T>));
      }
    });
  }

  // Only some of the centers that are in `all`; they keep their names.
  void pack(const Panels& all, std::span<const Label> listed) {
    listed_ = listed;
    prepare(all.centers_, listed.size(), all.shift_);
    for (std::size_t p = 0; p < panels_; ++p) {
      const std::size_t next = (p + 1) * width();  // scattered: ask for them in time
      for (std::size_t s = next; s < std::min(count_, next + width()); ++s) {
        prefetch_row(centers_[static_cast<std::size_t>(listed[s])], centers_.d);
      }
      transpose(p);
    }
    for (std::size_t s = 0; s < count_; ++s) {
      base_[s] = all.base_[static_cast<std::size_t>(listed[s])];
      slack_[s] = all.slack_[static_cast<std::size_t>(listed[s])];
    }
  }

  std::size_t count() const { return count_; }
  std::size_t panels() const { return panels_; }
  std::size_t width() const { return kernel_.panel; }
  // Products of m rows with the centers of `count` panels from the p-th on. out[i * stride + j].
  void dots(const T* const* rows, std::size_t m, std::size_t p, std::size_t count, T* out, std::size_t stride) const {
    kernel_.dots(rows, m, packed_.data() + p * width() * centers_.d, count, centers_.d, out, stride);
  }
  // Those of all packed centers, the same bits on every CPU.
  void heads(const T* const* rows, std::size_t m, T* out, std::size_t stride) const {
    kernel_.heads(rows, m, packed_.data(), panels_, centers_.d, out, stride);
  }
  const T* base() const { return base_.data(); }
  const T* slack() const { return slack_.data(); }
  const T* shift() const { return shift_; }
  Rows<const T> centers() const { return centers_; }
  Label id(std::size_t slot) const { return listed_.empty() ? static_cast<Label>(slot) : listed_[slot]; }

  // The upper end of the interval of scores of which `low` is the lower end, for a row of this norm.
  double upper(double low, std::size_t slot, double norm) const {
    const double base = std::abs(static_cast<double>(base_[slot]));
    return low + 2 * static_cast<double>(slack_[slot]) * norm + 16 * kUnit<T> * std::abs(low) + 6 * error_ * base +
           8 * underflow<T>(centers_.d);
  }

 private:
  void prepare(Rows<const T> centers, std::size_t count, const T* shift) {
    const std::size_t width = kernel_.panel;
    centers_ = centers;
    shift_ = shift;
    count_ = count;
    error_ = product_error<T>(centers.d);
    panels_ = (count + width - 1) / width;
    packed_.resize(panels_ * width * centers.d);
    base_.assign(panels_ * width, std::numeric_limits<T>::infinity());
    slack_.assign(panels_ * width, T(0));
  }

  void transpose(std::size_t p) {
    constexpr std::size_t kMost = 32;  // centers in a panel, at most
    const T* c[kMost];
    for (std::size_t j = 0; j < kernel_.panel; ++j) {
      // Any center will do where there is none: its base is infinite.
      c[j] = centers_[static_cast<std::size_t>(id(std::min(p * kernel_.panel + j, count_ - 1)))];
    }
    kernel_.pack(c, shift_, centers_.d, packed_.data() + p * kernel_.panel * centers_.d);
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> centers_;
  std::span<const Label> listed_;
  const T* shift_ = nullptr;
  std::size_t count_ = 0, panels_ = 0;
  double error_ = 0.0;
  Large<T> packed_;
  std::vector<T> base_, slack_;
};

// What a search over panels found for a row: the nearest center and, squared, a distance it is not farther than and
// one that no other center is nearer than.
struct Found {
  Label label;
  double nearest, others;
};

// The nearest of the packed centers for up to kBlock rows at a time. Scratch is reused between calls.
template <class T>
class PanelSearch {
 public:
  static constexpr std::size_t kBlock = 96;     // rows that share a pass over the panels
  static constexpr std::size_t kCenters = 256;  // centers whose products are held at once

  PanelSearch() : products_(kBlock * kCenters) {}

  // current(i): the label row i has now.
  template <class Current>
  void operator()(const Panels<T>& panels, const T* const* rows, std::size_t m, Current&& current, Found* out) {
    const std::size_t d = panels.centers().d, width = panels.width(), group = kCenters / width;
    const double error = difference_error<T>(d), lost = underflow<T>(d);
    const T* moved[kBlock];
    const T* const* x = shift(panels, rows, m, moved);
    Lowest<T> best[kBlock];
    double square[kBlock];
    T norm[kBlock];
    for (std::size_t i = 0; i < m; ++i) {
      if (i + 2 < m) prefetch_row(x[i + 2], d);
      best[i] = {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity(), kUnassigned};
      square[i] = static_cast<double>(kernel_.square(x[i], d));
      norm[i] = T(std::sqrt(square[i]) * (1 + error));
    }
    for (std::size_t p = 0; p < panels.panels(); p += group) {
      const std::size_t count = std::min(group, panels.panels() - p), j = p * width;
      panels.dots(x, m, p, count, products_.data(), kCenters);
      for (std::size_t i = 0; i < m; ++i) {
        kernel_.lowest(products_.data() + i * kCenters, panels.base() + j, panels.slack() + j, norm[i], count * width,
                       static_cast<std::int32_t>(j), &best[i]);
      }
    }
    for (std::size_t i = 0; i < m; ++i) {
      const auto slot = static_cast<std::size_t>(best[i].index);
      // What the exact distance cannot tell apart is a tie.
      const double reach = panels.upper(best[i].first, slot, norm[i]) + 2 * difference_error<double>(d) * square[i];
      if (best[i].second > reach) {
        out[i] = {panels.id(slot), reach + square[i] * (1 + error) + lost,
                  best[i].second + square[i] * (1 - error) - lost};
      } else {
        const Nearest tie = decide(panels, rows[i], x[i], norm[i], reach, current(i));
        out[i] = {tie.label, tie.square, best[i].first + square[i] * (1 - error) - lost};
      }
    }
  }

 private:
  const T* const* shift(const Panels<T>& panels, const T* const* rows, std::size_t m, const T** moved) {
    if (!panels.shift()) return rows;
    const std::size_t d = panels.centers().d;
    shifted_.resize(kBlock * d);
    for (std::size_t i = 0; i < m; ++i) {
      T* z = shifted_.data() + i * d;
      for (std::size_t c = 0; c < d; ++c) z[c] = rows[i][c] - panels.shift()[c];
      moved[i] = z;
    }
    return moved;
  }

  // A near tie: look at all the centers again, exactly where their interval reaches down to `reach`.
  Nearest decide(const Panels<T>& panels, const T* row, const T* x, T norm, double reach, Label current) {
    const std::size_t width = panels.width(), group = kCenters / width, d = panels.centers().d;
    Nearest nearest;
    for (std::size_t p = 0; p < panels.panels(); p += group) {
      const std::size_t count = std::min(group, panels.panels() - p), first = p * width;
      panels.dots(&x, 1, p, count, products_.data() + (kBlock - 1) * kCenters, kCenters);
      const T* products = products_.data() + (kBlock - 1) * kCenters;
      for (std::size_t s = first; s < std::min(panels.count(), first + count * width); ++s) {
        if (panels.base()[s] - 2 * products[s - first] - norm * panels.slack()[s] > reach) continue;
        const Label j = panels.id(s);
        nearest.offer(j, kernel_.squared_distance(row, panels.centers()[static_cast<std::size_t>(j)], d), current);
      }
    }
    return nearest;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::vector<T> products_, shifted_;
};

// The nearest packed center of every row, over the pool. Returns how many labels changed.
template <class T>
std::int64_t label_nearest(Rows<const T> x, const Panels<T>& panels, std::span<Label> labels, Pool& pool) {
  constexpr std::size_t kBlock = PanelSearch<T>::kBlock;
  std::vector<PanelSearch<T>> searches(static_cast<std::size_t>(pool.size()));
  return pool.tally<std::int64_t>(x.n, kBlock, [&](std::size_t a, std::size_t b, int worker) {
    const T* rows[kBlock] = {};
    Found found[kBlock];
    for (std::size_t i = a; i < b; ++i) rows[i - a] = x[i];
    searches[static_cast<std::size_t>(worker)](
        panels, rows, b - a, [&](std::size_t i) { return labels[a + i]; }, found);
    std::int64_t moved = 0;
    for (std::size_t i = a; i < b; ++i) {
      moved += labels[i] != found[i - a].label;
      labels[i] = found[i - a].label;
    }
    return moved;
  });
}

}  // namespace k2
