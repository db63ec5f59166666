// The k_n nearest centers of every center (Algorithm 1, line 6): exact, self first, then by distance.
#pragma once

#include <algorithm>
#include <cmath>
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

// Keeps those of a stream of (lower, upper) intervals that may be among the `wanted` smallest.
template <class T>
class Shortlist {
 public:
  struct Entry {
    T low, high;
    Label id;
  };

  // `limit`: the `wanted` smallest are known to be no larger.
  void start(std::size_t wanted, T limit) {
    wanted_ = wanted;
    limit_ = limit;
    kept_.clear();
  }
  // Lower ends of the intervals of centers first, first + 1, ...; high(low, j) is the upper end.
  template <class High>
  void offer(const T* low, std::size_t count, std::size_t first, High&& high) {
    for (std::size_t j = 0; j < count; ++j) {
      if (low[j] > limit_) continue;
      kept_.push_back({low[j], high(low[j], first + j), static_cast<Label>(first + j)});
      if (kept_.size() >= 4 * wanted_ + 32) tighten();
    }
  }
  const std::vector<Entry>& finish() {
    if (kept_.size() > wanted_) tighten();
    return kept_;
  }

 private:
  void tighten() {
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1);
    std::nth_element(kept_.begin(), last, kept_.end(), [](const Entry& a, const Entry& b) { return a.high < b.high; });
    limit_ = std::min(limit_, last->high);
    std::erase_if(kept_, [this](const Entry& e) { return e.low > limit_; });
  }

  std::size_t wanted_ = 0;
  T limit_ = 0;
  std::vector<Entry> kept_;
};

template <class T>
struct NeighborScratch {
  std::vector<T> scores;
  std::vector<Shortlist<T>> near;
  std::vector<std::pair<double, Label>> exact;
};

// How far the k_n-th neighbor of l can be now: where the old ones were, and how much they and l have moved since.
inline double farthest_neighbor(const Neighbors& before, const std::vector<double>& drift, std::size_t l) {
  if (before.id.empty()) return std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (std::size_t s = 0; s < before.width; ++s) {
    most = std::max(most, before.distances(l)[s] + drift[static_cast<std::size_t>(before.ids(l)[s])]);
  }
  return (most + drift[l]) * (1 + 0x1p-30);
}

// `before`: the neighbors one move ago (same k_n), or none.
template <class T>
void find_neighbors(const Centers<T>& centers, std::size_t width, const Neighbors& before, Panels<T>& panels,
                    Neighbors& out, Pool& pool) {
  constexpr std::size_t kBlock = 24, kCenters = 256;
  const Kernels<T>& kernel = kernels<T>();
  const std::size_t k = centers.k, d = centers.d;
  out.width = width;
  out.id.resize(k * width);
  out.distance.resize(k * width);
  const Rows<const T> rows{centers.value.data(), k, d};
  panels.pack(rows, nullptr, pool);
  const std::size_t group = kCenters / panels.width();

  std::vector<NeighborScratch<T>> scratches(static_cast<std::size_t>(pool.size()));
  pool.for_chunks(k, kBlock, [&](std::size_t a, std::size_t b, int worker) {
    NeighborScratch<T>& scratch = scratches[static_cast<std::size_t>(worker)];
    std::vector<T>& scores = scratch.scores;
    std::vector<Shortlist<T>>& near = scratch.near;
    std::vector<std::pair<double, Label>>& exact = scratch.exact;
    scores.resize(kBlock * kCenters);
    near.resize(kBlock);
    const T* x[kBlock];
    T norm[kBlock];
    for (std::size_t l = a; l < b; ++l) {
      x[l - a] = centers[l];
      const double error = difference_error<T>(d), square = static_cast<double>(kernel.square(centers[l], d));
      const double far = farthest_neighbor(before, centers.drift, l);
      norm[l - a] = T(std::sqrt(square) * (1 + error));
      near[l - a].start(width, T((far * far - square) + (far * far + square) * 2 * error + 8 * underflow<T>(d)));
    }
    for (std::size_t p = 0; p < panels.panels(); p += group) {
      const std::size_t count = std::min(group, panels.panels() - p), first = p * panels.width();
      const std::size_t last = std::min(k, first + count * panels.width());
      const T *base = panels.base() + first, *slack = panels.slack() + first;
      kernel.dots(x, b - a, panels.panel(p), count, d, scores.data(), kCenters);
      for (std::size_t l = a; l < b; ++l) {
        T* low = scores.data() + (l - a) * kCenters;
        const T own = norm[l - a];
        for (std::size_t j = 0; j < last - first; ++j) low[j] = base[j] - 2 * low[j] - own * slack[j];
        near[l - a].offer(low, last - first, first, [&](T v, std::size_t j) {
          return T(panels.upper(v, j, own) * (1 + 4 * kUnit<T>) + std::numeric_limits<T>::min());
        });
      }
    }
    for (std::size_t l = a; l < b; ++l) {
      exact.clear();
      for (const auto& e : near[l - a].finish()) {
        const auto j = static_cast<std::size_t>(e.id);
        exact.emplace_back(j == l ? -1.0 : kernel.squared_distance(centers[l], centers[j], d), e.id);
      }
      if (std::none_of(exact.begin(), exact.end(), [&](auto& e) { return e.second == static_cast<Label>(l); })) {
        exact.emplace_back(-1.0, static_cast<Label>(l));  // crowded out by twins of itself
      }
      std::partial_sort(exact.begin(), exact.begin() + static_cast<std::ptrdiff_t>(width), exact.end());
      for (std::size_t s = 0; s < width; ++s) {
        out.id[l * width + s] = exact[s].second;
        out.distance[l * width + s] = s == 0 ? 0.0 : std::sqrt(exact[s].first);
      }
    }
  });
}

}  // namespace k2
