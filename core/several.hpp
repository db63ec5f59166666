// The m nearest of all centers for every row, exactly, by distance and then by index.
//
// Scores are lower bounds on squared distances. Centers are measured, lowest score first, until a score is beyond the
// m-th distance found; only a few of low score are put in order for that, unless they turn out not to be enough.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "sketch.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
struct Several {
  std::vector<Label> ids;         // n x m
  std::vector<double> distances;  // n x m
};

// The m nearest of those offered: by their squares, of equals the lowest index.
class Closest {
 public:
  explicit Closest(std::size_t m) : m_(m) {}

  void offer(double square, Label j) {
    best_.emplace_back(square, j);
    std::push_heap(best_.begin(), best_.end());
    if (best_.size() <= m_) return;
    std::pop_heap(best_.begin(), best_.end());
    best_.pop_back();
  }

  // The square of the m-th.
  double farthest() const { return best_.size() == m_ ? best_.front().first : std::numeric_limits<double>::infinity(); }

  void finish(Label* ids, double* distances) {
    take([&](std::size_t s, double square, Label j) { distances[s] = std::sqrt(square), ids[s] = j; });
  }

  // f(s, square, j) for the s-th, nearest first; then there are none.
  template <class F>
  void take(F&& f) {
    std::sort(best_.begin(), best_.end());
    for (std::size_t s = 0; s < m_; ++s) f(s, best_[s].first, best_[s].second);
    best_.clear();
  }

 private:
  std::size_t m_;
  std::vector<std::pair<double, Label>> best_;  // the farthest first
};

// `sketch`: of the rows x, or null: then they are their own.
template <class T>
class SeveralSearch {
 public:
  SeveralSearch(Rows<const T> centers, const Sketch<T>* sketch, std::size_t m, Pool& pool)
      : centers_(centers),
        sketch_(sketch),
        m_(std::min(m, centers.n)),
        scratch_(static_cast<std::size_t>(pool.size())) {
    packed_.pack(centers, sketch, pool);
    widest_ = *std::max_element(packed_.margin.begin(), packed_.margin.end());
  }

  Several<T> operator()(Rows<const T> x, Pool& pool) {
    Several<T> out{std::vector<Label>(x.n * m_), std::vector<double>(x.n * m_)};
    const Rows<const T> h = sketch_ ? sketch_->rows() : x;
    pool.for_chunks(x.n, kBlock, [&](std::size_t a, std::size_t b, int worker) {
      Scratch& s = scratch_[static_cast<std::size_t>(worker)];
      s.dots.resize(kBlock * packed_.size());
      const T* rows[kBlock];
      for (std::size_t i = a; i < b; ++i) rows[i - a] = h[i];
      packed_.panels.dots(rows, b - a, 0, packed_.panels.panels(), s.dots.data(), packed_.size());
      for (std::size_t i = a; i < b; ++i) {
        const Gate<T> gate = packed_.gate(rows[i - a], h.d, sketch_ ? sketch_->margin()[i] : T(0));
        find(x[i], gate, s.dots.data() + (i - a) * packed_.size(), s, &out.ids[i * m_], &out.distances[i * m_]);
      }
    });
    return out;
  }

 private:
  static constexpr std::size_t kBlock = 24;
  using Candidate = std::pair<double, Label>;  // a lower bound on the distance, and whose

  struct Scratch {
    std::vector<T> dots, scores, sample;
    std::vector<Candidate> candidates;
  };

  void find(const T* x, const Gate<T>& gate, const T* dots, Scratch& s, Label* ids, double* distances) const {
    auto bound = [&](T square, T margin) {
      const double root = std::sqrt(std::max(0.0, static_cast<double>(square))) * (1 - 0x1p-20);
      return root - static_cast<double>(margin) - static_cast<double>(gate.own_margin);
    };
    s.scores.resize(centers_.n);
    for (std::size_t j = 0; j < centers_.n; ++j) s.scores[j] = score(gate, dots, j) + gate.square;
    Closest best(m_);
    auto is_out = [&](double low) { return low > 0 && low * low > best.farthest(); };
    const T few = likely(s);
    for (const bool rest : {false, true}) {  // those of low scores; only if that was not enough, the others
      s.candidates.clear();
      for (std::size_t j = 0; j < centers_.n; ++j) {
        if ((s.scores[j] > few) == rest) s.candidates.emplace_back(bound(s.scores[j], packed_.margin[j]), Label(j));
      }
      std::sort(s.candidates.begin(), s.candidates.end());
      for (const auto& [low, j] : s.candidates) {
        if (is_out(low)) break;
        best.offer(kernel_.squared_distance(x, centers_[static_cast<std::size_t>(j)], centers_.d), j);
      }
      if (is_out(bound(few, widest_))) break;
    }
    best.finish(ids, distances);
  }

  // A score that about 4 m of the centers are below, from every eighth of them.
  T likely(Scratch& s) const {
    s.sample.clear();
    for (std::size_t j = 0; j < s.scores.size(); j += 8) s.sample.push_back(s.scores[j]);
    const std::size_t rank = std::min(s.sample.size() - 1, m_ / 2 + 4);
    std::nth_element(s.sample.begin(), s.sample.begin() + static_cast<std::ptrdiff_t>(rank), s.sample.end());
    return s.sample[rank];
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> centers_;
  const Sketch<T>* sketch_;
  std::size_t m_;
  Packed<T> packed_;
  T widest_ = T(0);  // of the margins
  std::vector<Scratch> scratch_;
};

}  // namespace k2
