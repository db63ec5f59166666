// The m nearest of all centers for every row, exactly, by distance and then by index.
//
// Scores are lower bounds on squared distances. A few of them tell how far the m-th can be at most; who is beyond that
// by its score is out. The rest is measured, lowest score first, until a score is beyond the m-th distance found.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "sketch.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
struct Several {
  std::vector<Label> ids;         // n x m
  std::vector<double> distances;  // n x m
};

// `sketch`: of the rows x, or null: then they are their own.
template <class T>
class SeveralSearch {
 public:
  SeveralSearch(Rows<const T> centers, const Sketch<T>* sketch, std::size_t m, Pool& pool)
      : centers_(centers), sketch_(sketch), m_(std::min(m, centers.n)) {
    margin_.resize(centers.n);
    if (sketch) {
      const std::size_t w = Sketch<T>::kWidth;
      center_sketch_.resize(centers.n * w);
      sketch->of(centers, center_sketch_.data(), margin_.data(), pool);
      panels_.pack({center_sketch_.data(), centers.n, w}, nullptr, pool);
    } else {
      panels_.pack(centers, nullptr, pool);
    }
  }

  Several<T> operator()(Rows<const T> x, Pool& pool) {
    Several<T> out{std::vector<Label>(x.n * m_), std::vector<double>(x.n * m_)};
    const Rows<const T> h = sketch_ ? sketch_->rows() : x;
    const std::size_t padded = panels_.panels() * panels_.width();
    pool.for_chunks(x.n, kBlock, [&](std::size_t a, std::size_t b, int) {
      std::vector<T> dots(kBlock * padded);
      std::vector<Candidate> candidates;
      const T* rows[kBlock];
      for (std::size_t i = a; i < b; ++i) rows[i - a] = h[i];
      kernel_.dots(rows, b - a, panels_.panel(0), panels_.panels(), h.d, dots.data(), padded);
      for (std::size_t i = a; i < b; ++i) {
        const T margin = sketch_ ? sketch_->margin()[i] : T(0);
        find(x[i], rows[i - a], h.d, margin, dots.data() + (i - a) * padded, candidates, &out.ids[i * m_],
             &out.distances[i * m_]);
      }
    });
    return out;
  }

 private:
  static constexpr std::size_t kBlock = 24;
  using Candidate = std::pair<double, Label>;  // a lower bound on the distance, and whose

  void find(const T* x, const T* h, std::size_t p, T margin, const T* dots, std::vector<Candidate>& candidates,
            Label* ids, double* distances) const {
    const double error = difference_error<T>(p), square = static_cast<double>(kernel_.square(h, p));
    const T norm = T(std::sqrt(square) * (1 + 2 * error)), low = T(square * (1 - 8 * error) - underflow<T>(p));
    candidates.clear();
    for (std::size_t j = 0; j < centers_.n; ++j) {
      const T score = panels_.base()[j] - 2 * dots[j] - norm * panels_.slack()[j] + low;
      const double bound = std::sqrt(std::max(0.0, static_cast<double>(score))) * (1 - 0x1p-20);
      candidates.emplace_back(bound - static_cast<double>(margin_[j]) - static_cast<double>(margin), Label(j));
    }
    std::vector<Candidate> best;  // the m nearest measured, by their squares, the farthest of them first
    std::size_t sorted = 0;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (c == sorted) {  // a few more in order
        const std::size_t more = std::min(candidates.size(), sorted + std::max<std::size_t>(2 * m_, 16));
        const auto from = candidates.begin() + static_cast<std::ptrdiff_t>(sorted);
        const auto to = candidates.begin() + static_cast<std::ptrdiff_t>(more);
        std::nth_element(from, to - 1, candidates.end());
        std::sort(from, to);
        sorted = more;
      }
      const double bound = std::max(0.0, candidates[c].first);
      if (best.size() == m_ && bound * bound > best.front().first) break;
      const Label j = candidates[c].second;
      best.emplace_back(kernel_.squared_distance(x, centers_[static_cast<std::size_t>(j)], centers_.d), j);
      std::push_heap(best.begin(), best.end());
      if (best.size() > m_) {
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
    }
    std::sort(best.begin(), best.end());
    for (std::size_t s = 0; s < m_; ++s) distances[s] = std::sqrt(best[s].first), ids[s] = best[s].second;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> centers_;
  const Sketch<T>* sketch_;
  std::size_t m_;
  Panels<T> panels_;
  std::vector<T> center_sketch_, margin_;
};

}  // namespace k2
