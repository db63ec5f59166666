// How centers move: the mean of their members (Algorithm 1, line 14), from moved rows only. The only writer of centers.
//
// Sums are kept in 64-bit fixed point about the mean of the data, one scale per column: adding and taking away is
// exact, so neither the order of the rows nor the number of iterations leaves a trace. A column's spread must be worth
// many quanta (2^24) for that; if one is not, for lack of range in n or in the weights, sums are kept in double
// instead, and the clusters that changed are summed anew, rows in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "distance.hpp"
#include "groups.hpp"
#include "large.hpp"
#include "parallel.hpp"
#include "refill.hpp"
#include "survey.hpp"
#include "types.hpp"

namespace k2 {

// Center j goes to where `to` says, column by column. Returns the squared distance.
template <class T, class To>
double relocate(Centers<T>& centers, std::size_t j, To&& to) {
  T* c = centers.writable(j);
  double square = 0.0;
  for (std::size_t i = 0; i < centers.d; ++i) {
    const T there = static_cast<T>(to(i));
    const double step = static_cast<double>(there) - static_cast<double>(c[i]);
    square += step * step;
    c[i] = there;
  }
  return square;
}

// Bounds are lowered by the drift: it must not be too small.
inline double upper_root(double square) { return std::sqrt(square) * (1 + 0x1p-30); }

template <class T>
class Mean {
 public:
  // `unit`: centers are means scaled to length one, for rows on the unit sphere.
  Mean(Rows<const T> x, const double* weights, const Survey& survey, std::size_t k, bool unit = false)
      : unit_(unit),
        weights_(weights),
        mean_(survey.mean),
        total_(survey.total),
        counted_(x.n, kUnassigned),
        members_(k, 0),
        touched_(k, 0),
        scale_(x.d),
        quantum_(x.d),
        fixed_(choose_scale(x, survey)) {
    if (fixed_) {
      sums_.assign(k * x.d, 0);
      weight_.assign(k, 0);
    } else {
      loose_sums_.assign(k * x.d, 0.0);
      loose_weight_.assign(k, 0.0);
    }
  }

  Moved operator()(Rows<const T> x, std::span<Label> labels, Centers<T>& centers, Pool& pool) {
    Moved out;
    out.ops.additions = count_moves(x, labels, pool);
    if (std::find(members_.begin(), members_.end(), 0) != members_.end()) {
      out.refilled = refill_empty(x, centers, std::span<const std::int64_t>(members_), labels, pool);
      out.ops.distances = x.n;
      out.ops.additions += count_moves(x, labels, pool);
    }
    out.shift = pool.tally<double>(centers.k, 64, [&](std::size_t a, std::size_t b, int) {
      double shift = 0.0;
      for (std::size_t j = a; j < b; ++j) shift += place(centers, j);
      return shift;
    });
    return out;
  }

  // Bring sums up to the labels as they are. Returns the additions: one for each row added or taken away.
  std::uint64_t count_moves(Rows<const T> x, std::span<const Label> labels, Pool& pool) {
    if (fixed_ && counted_[0] == kUnassigned) return count_all(x, labels, pool);
    find_changes(labels, pool);
    std::uint64_t additions = 0;
    for (const Change& c : changes_) additions += book(c.row, c.to, 1) + book(c.row, c.from, -1);
    return fixed_ ? (transfer(x, pool), additions) : sum_anew(x, labels, pool);
  }

  // Sum of the squared distances of the rows to the centers of their labels, from the sums alone: O(k d).
  double energy(const Centers<T>& centers, Pool& pool) const {
    const double gain = pool.tally<double>(centers.k, 64, [&](std::size_t a, std::size_t b, int) {
      double s = 0.0;
      for (std::size_t j = a; j < b; ++j) {
        const double w = weight(j);
        for (std::size_t i = 0; i < centers.d; ++i) {
          const double c = static_cast<double>(centers[j][i]) - mean_[i];
          s += c * (2 * sum(j, i, centers.d) - w * c);
        }
      }
      return s;
    });
    return std::max(0.0, total_ - gain);
  }

  bool fixed() const { return fixed_; }

 private:
  struct Change {
    Row row;
    Label from, to;
  };

  bool choose_scale(Rows<const T> x, const Survey& survey) {
    const double n = static_cast<double>(x.n);
    weight_scale_ = weights_ ? power_of_two_below(std::min(0x1p51, 0x1p62 / n) / survey.heaviest) : 1.0;
    bool fine = !weights_ || 1 / weight_scale_ <= 0x1p-24 * survey.lightest;
    for (std::size_t i = 0; i < x.d; ++i) {
      const double reach = std::max(survey.high[i] - mean_[i], mean_[i] - survey.low[i]);
      scale_[i] = quantum_[i] = 1.0;
      if (!(reach > 0)) continue;  // a constant column sums to zero
      scale_[i] = power_of_two_below(std::min(0x1p50, 0x1p61 / n) / (reach * survey.heaviest));
      quantum_[i] = 1 / scale_[i];
      fine = fine && std::isnormal(scale_[i]) && quantum_[i] <= 0x1p-24 * survey.deviation[i] * survey.lightest;
    }
    return fine;
  }
  static double power_of_two_below(double v) { return std::exp2(std::floor(std::log2(v))); }

  void find_changes(std::span<const Label> labels, Pool& pool) {
    constexpr std::size_t kChunk = 1 << 14;
    std::vector<std::vector<Change>> found((labels.size() + kChunk - 1) / kChunk);
    pool.for_chunks(labels.size(), kChunk, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t i = a; i < b; ++i) {
        if (counted_[i] == labels[i]) continue;
        found[a / kChunk].push_back({static_cast<Row>(i), counted_[i], labels[i]});
        counted_[i] = labels[i];
      }
    });
    changes_.clear();
    for (const auto& f : found) changes_.insert(changes_.end(), f.begin(), f.end());
  }

  // A row joins a cluster (sign 1) or leaves it (-1). Whether there is such a cluster.
  bool book(Row i, Label label, int sign) {
    if (label == kUnassigned) return false;
    const auto j = static_cast<std::size_t>(label);
    touched_[j] = 1;
    members_[j] += sign;
    if (fixed_) weight_[j] += sign * fixed_weight(i);
    return true;
  }

  // At first every row is new; a cluster's sum stays at hand if its rows come together.
  std::uint64_t count_all(Rows<const T> x, std::span<const Label> labels, Pool& pool) {
    counted_.assign(labels.begin(), labels.end());
    Groups groups;
    groups.sort(labels, members_.size(), labels.size(), pool);
    pool.for_chunks(members_.size(), 1, [&](std::size_t j, std::size_t, int) {
      const auto rows = groups.members(j);
      members_[j] = static_cast<std::int64_t>(rows.size());
      touched_[j] = !rows.empty();
      std::int64_t* sum = sum_of(static_cast<Label>(j), x.d);
      const std::size_t ahead = rows_ahead<T>(x.d);
      for (std::size_t m = 0; m < rows.size(); ++m) {
        if (m + ahead < rows.size()) prefetch_row(x[rows[m + ahead]], x.d);
        kernel_.transfer(x[rows[m]], mean_.data(), scale_.data(), weight_of(rows[m]), sum, nullptr, x.d);
        weight_[j] += fixed_weight(rows[m]);
      }
    });
    return labels.size();
  }

  void transfer(Rows<const T> x, Pool& pool) {
    // Each piece of work owns the sums of some clusters, and the next turn the same: they stay in one core's cache. So
    // a row may be read by two, but clusters near each other have names near each other, and most have one owner.
    const std::size_t k = members_.size(), share = k / (2 * static_cast<std::size_t>(pool.size())) + 1;
    const std::size_t ahead = rows_ahead<T>(x.d);
    const std::size_t batch = std::max<std::size_t>(256, (std::size_t{1} << 22) / x.d);  // between two looks at Ctrl-C
    for (std::size_t first = 0; first < changes_.size(); first += batch) {
      pool.for_chunks(k, share, [&](std::size_t a, std::size_t b, int) {
        const std::size_t last = std::min(changes_.size(), first + batch);
        auto owned = [&](Label j) { return j >= Label(a) && j < Label(b) ? sum_of(j, x.d) : nullptr; };
        for (std::size_t c = first; c < last; ++c) {
          const Change &change = changes_[c], &soon = changes_[std::min(last - 1, c + ahead)];
          if (owned(soon.to) || owned(soon.from)) prefetch_row(x[soon.row], x.d);
          std::int64_t *to = owned(change.to), *from = owned(change.from);
          if (!to && !from) continue;
          const double w = to ? weight_of(change.row) : -weight_of(change.row);
          if (!to) std::swap(to, from);
          kernel_.transfer(x[change.row], mean_.data(), scale_.data(), w, to, from, x.d);
        }
      });
    }
  }

  std::uint64_t sum_anew(Rows<const T> x, std::span<const Label> labels, Pool& pool) {
    groups_.sort(labels, members_.size(), labels.size(), pool);
    return pool.tally<std::uint64_t>(members_.size(), 1, [&](std::size_t j, std::size_t, int) -> std::uint64_t {
      if (!touched_[j]) return 0;
      double* sum = loose_sums_.data() + j * x.d;
      std::fill_n(sum, x.d, 0.0);
      loose_weight_[j] = 0.0;
      for (const Row i : groups_.members(j)) {
        const double w = weight_of(i);
        kernel_.accumulate(x[i], mean_.data(), w, sum, x.d);
        loose_weight_[j] += w;
      }
      return groups_.members(j).size();
    });
  }

  std::int64_t* sum_of(Label j, std::size_t d) { return sums_.data() + static_cast<std::size_t>(j) * d; }
  double weight_of(Row i) const { return weights_ ? weights_[i] : 1.0; }
  std::int64_t fixed_weight(Row i) const { return std::llrint(weight_of(i) * weight_scale_); }
  double weight(std::size_t j) const {
    return fixed_ ? static_cast<double>(weight_[j]) / weight_scale_ : loose_weight_[j];
  }
  double sum(std::size_t j, std::size_t i, std::size_t d) const {
    return fixed_ ? static_cast<double>(sums_[j * d + i]) * quantum_[i] : loose_sums_[j * d + i];
  }

  // Move center j to the mean of its members; an empty one stays. Returns the squared drift.
  double place(Centers<T>& centers, std::size_t j) {
    centers.drift[j] = 0.0;
    if (!touched_[j]) return 0.0;
    touched_[j] = 0;
    if (members_[j] == 0) return 0.0;
    const double w = weight(j);
    double length = 1.0;
    if (unit_) {
      length = 0.0;
      for (std::size_t i = 0; i < centers.d; ++i) length += std::pow(mean_[i] + sum(j, i, centers.d) / w, 2);
      if (!(length > 0)) return 0.0;  // its rows cancel out: it has no direction, and stays
      length = std::sqrt(length);
    }
    const double square =
        relocate(centers, j, [&](std::size_t i) { return (mean_[i] + sum(j, i, centers.d) / w) / length; });
    centers.drift[j] = upper_root(square);
    return square;
  }

  const Kernels<T>& kernel_ = kernels<T>();
  bool unit_;
  const double* weights_;
  std::vector<double> mean_;
  double total_;
  Large<Label> counted_;                 // the labels the sums stand for
  std::vector<std::int64_t> members_;    // rows in each cluster
  std::vector<char> touched_;            // clusters whose sums changed since their center was placed
  std::vector<double> scale_, quantum_;  // powers of two, each the inverse of the other
  double weight_scale_ = 1.0;
  bool fixed_;
  Large<std::int64_t> sums_, weight_;
  std::vector<double> loose_sums_, loose_weight_;
  std::vector<Change> changes_;
  Groups groups_;
};

}  // namespace k2
