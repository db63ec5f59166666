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
      widest_ = *std::max_element(margin_.begin(), margin_.end());
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
      std::vector<T> scores;
      const T* rows[kBlock];
      for (std::size_t i = a; i < b; ++i) rows[i - a] = h[i];
      kernel_.dots(rows, b - a, panels_.panel(0), panels_.panels(), h.d, dots.data(), padded);
      for (std::size_t i = a; i < b; ++i) {
        const T margin = sketch_ ? sketch_->margin()[i] : T(0);
        find(x[i], rows[i - a], h.d, margin, dots.data() + (i - a) * padded, scores, candidates, &out.ids[i * m_],
             &out.distances[i * m_]);
      }
    });
    return out;
  }

 private:
  static constexpr std::size_t kBlock = 24;
  using Candidate = std::pair<double, Label>;  // a lower bound on the distance, and whose

  void find(const T* x, const T* h, std::size_t p, T margin, const T* dots, std::vector<T>& scores,
            std::vector<Candidate>& candidates, Label* ids, double* distances) const {
    const double error = difference_error<T>(p), square = static_cast<double>(kernel_.square(h, p));
    const T norm = T(std::sqrt(square) * (1 + 2 * error)), low = T(square * (1 - 8 * error) - underflow<T>(p));
    scores.resize(centers_.n);
    for (std::size_t j = 0; j < centers_.n; ++j) {
      scores[j] = panels_.base()[j] - 2 * dots[j] - norm * panels_.slack()[j] + low;
    }
    std::vector<Candidate> best;  // the m nearest measured, by their squares, the farthest of them first
    const T few = likely(scores);
    for (const bool rest : {false, true}) {  // those of low scores; only if that was not enough, the others
      candidates.clear();
      for (std::size_t j = 0; j < centers_.n; ++j) {
        if ((scores[j] > few) != rest) continue;
        const double bound = std::sqrt(std::max(0.0, static_cast<double>(scores[j]))) * (1 - 0x1p-20);
        candidates.emplace_back(bound - static_cast<double>(margin_[j]) - static_cast<double>(margin), Label(j));
      }
      std::sort(candidates.begin(), candidates.end());
      for (const auto& [bound, j] : candidates) {
        if (best.size() == m_ && bound > 0 && bound * bound > best.front().first) break;
        best.emplace_back(kernel_.squared_distance(x, centers_[static_cast<std::size_t>(j)], centers_.d), j);
        std::push_heap(best.begin(), best.end());
        if (best.size() <= m_) continue;
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
      // Nobody in the rest has a lower score than `few`.
      const double least = std::sqrt(std::max(0.0, static_cast<double>(few))) * (1 - 0x1p-20) -
                           static_cast<double>(widest_) - static_cast<double>(margin);
      if (best.size() == m_ && least > 0 && least * least > best.front().first) break;
    }
    std::sort(best.begin(), best.end());
    for (std::size_t s = 0; s < m_; ++s) distances[s] = std::sqrt(best[s].first), ids[s] = best[s].second;
  }

  // A score that about 4 m of the centers are below, from every eighth of them.
  T likely(const std::vector<T>& scores) const {
    std::vector<T> sample;
    for (std::size_t j = 0; j < scores.size(); j += 8) sample.push_back(scores[j]);
    const std::size_t rank = std::min(sample.size() - 1, m_ / 2 + 4);
    std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(rank), sample.end());
    return sample[rank];
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> centers_;
  const Sketch<T>* sketch_;
  std::size_t m_;
  Panels<T> panels_;
  std::vector<T> center_sketch_, margin_;
  T widest_ = T(0);  // of the margins
};

}  // namespace k2
