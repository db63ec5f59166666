// Which rows an iteration looks at: all of them, or batches drawn at random.
#pragma once

#include <algorithm>
#include <vector>

#include "random.hpp"
#include "types.hpp"

namespace k2 {

// Rows and the labels they have now.
template <class T>
struct Batch {
  Rows<const T> x;
  std::span<Label> labels;
};

template <class T>
class AllRows {
 public:
  static constexpr bool kAll = true;
  std::size_t batches() const { return 1; }
  Batch<T> operator()(Rows<const T> x, std::span<Label> labels) const { return {x, labels}; }
};

// All rows, several times: the method itself knows whose turn it is.
template <class T>
class Turns {
 public:
  static constexpr bool kAll = true;
  explicit Turns(std::size_t turns) : turns_(turns) {}
  std::size_t batches() const { return turns_; }
  Batch<T> operator()(Rows<const T> x, std::span<Label> labels) const { return {x, labels}; }

 private:
  std::size_t turns_;
};

// `size` rows at a time, drawn with replacement, in proportion to their weights. They are copied side by side.
template <class T>
class RandomRows {
 public:
  static constexpr bool kAll = false;

  struct Options {
    std::size_t size;
    std::size_t batches;  // in one iteration
    std::uint64_t seed;
  };
  RandomRows(Rows<const T> x, const double* weights, const Options& o)
      : options_(o), copied_(o.size * x.d), labels_(o.size), reach_(weights ? x.n : 0) {
    double sum = 0.0;
    for (std::size_t i = 0; i < reach_.size(); ++i) reach_[i] = sum += weights[i];
  }

  std::size_t batches() const { return options_.batches; }

  Batch<T> operator()(Rows<const T> x, std::span<Label> labels) {
    Random random(options_.seed, drawn_++);
    for (std::size_t b = 0; b < options_.size; ++b) {
      const std::size_t i = draw(x.n, random);
      std::copy_n(x[i], x.d, copied_.data() + b * x.d);
      labels_[b] = labels[i];
    }
    return {{copied_.data(), options_.size, x.d}, labels_};
  }

 private:
  std::size_t draw(std::size_t n, Random& random) const {
    if (reach_.empty()) return static_cast<std::size_t>(random.below(n));
    const auto at = std::upper_bound(reach_.begin(), reach_.end(), random.uniform() * reach_.back());
    return std::min(n - 1, static_cast<std::size_t>(at - reach_.begin()));
  }

  Options options_;
  std::uint64_t drawn_ = 0;
  std::vector<T> copied_;
  std::vector<Label> labels_;
  std::vector<double> reach_;  // sums of the weights up to each row; empty: all weights are one
};

}  // namespace k2
