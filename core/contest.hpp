// Which of a few centers is nearest to one row, one distance at a time; and bounds that survive rounding.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

#include "distance.hpp"
#include "types.hpp"

namespace k2 {

// Fast distances decide what is clear, the exact one decides near ties: the winner is the Nearest.
template <class T>
class Contest {
 public:
  Contest(const Centers<T>& centers, const T* x, Label current)
      : centers_(centers),
        x_(x),
        current_(current),
        error_(2 * difference_error<T>(centers.d)),
        lost_(underflow<T>(centers.d)) {}

  // The squared distance of x to center j, which joins the contest; it counts `factor` times.
  double enter(Label j, double factor = 1.0) {
    return enter(j, factor, static_cast<double>(kernel_.near(x_, centers_[static_cast<std::size_t>(j)], centers_.d)));
  }

  // The same, if its fast squared distance s is known.
  double enter(Label j, double factor, double s) {
    const double value = s * factor, lost = 2 * lost_ * std::max(factor, factor_);
    if (best_ == kUnassigned || value * (1 + error_) + lost < value_ * (1 - error_)) {
      best_ = j, square_ = s, value_ = value, factor_ = factor, exact_ = -1.0;
    } else if (value * (1 - error_) <= value_ * (1 + error_) + lost) {
      if (exact_ < 0) exact_ = measure(best_) * factor_;
      Nearest tie{best_, exact_};
      tie.offer(j, measure(j) * factor, current_);
      if (tie.label == j) best_ = j, square_ = s, value_ = value, factor_ = factor, exact_ = tie.square;
    }
    return s;
  }

  Label best() const { return best_; }
  std::size_t dimension() const { return centers_.d; }
  double square() const { return square_; }  // of the distance to the best
  double value() const { return value_; }    // what it counts for

 private:
  double measure(Label j) const {
    return kernel_.squared_distance(x_, centers_[static_cast<std::size_t>(j)], centers_.d);
  }

  const Kernels<T>& kernel_ = kernels<T>();
  const Centers<T>& centers_;
  const T* x_;
  Label current_, best_ = kUnassigned;
  double error_;  // of the fast distance, and of the exact one, which in double is no better
  double lost_, square_ = 0.0, value_ = 0.0, factor_ = 1.0, exact_ = -1.0;
};

// Squared distances become bounds: shrunk or stretched by more than they can be wrong, then kept as float, whose small
// numbers end at 2^-126: what is less counts as nothing below, and as that much above.
class Slack {
 public:
  template <class T>
  static Slack of(std::size_t d) {
    return Slack(difference_error<T>(d), underflow<T>(d));
  }
  float below(double square) const { return down(std::sqrt(std::max(0.0, square - lost_)) * shrink_); }
  float above(double square) const { return up(std::sqrt(square + lost_) * stretch_); }
  // For values that are bounds already: only the rounding to float.
  static float down(double bound) { return bound > 0x1p-125 ? static_cast<float>(bound * (1 - 0x1p-23)) : 0.0f; }
  static float up(double bound) { return static_cast<float>(bound * (1 + 0x1p-23) + 0x1p-126); }

 private:
  Slack(double error, double lost) : shrink_(1 - error - 0x1p-22), stretch_(1 + error + 0x1p-22), lost_(lost) {}
  double shrink_, stretch_, lost_;
};

// In a build with K2_CHECK: no lower(p) above the distance to the center in place p of the list, and `upper` not below
// the distance to the first, the row's own.
template <class T, class Lower>
void check_list([[maybe_unused]] const T* x, [[maybe_unused]] const Centers<T>& centers,
                [[maybe_unused]] std::span<const Label> ids, [[maybe_unused]] Lower&& lower,
                [[maybe_unused]] double upper) {
#if K2_CHECK
  for (std::size_t p = 0; p < ids.size(); ++p) {
    const T* c = centers[static_cast<std::size_t>(ids[p])];
    const double distance = std::sqrt(kernels<T>().squared_distance(x, c, centers.d));
    assert(p == 0 ? upper >= distance * (1 - 0x1p-40) : lower(p) <= distance * (1 + 0x1p-40));
  }
#endif
}

}  // namespace k2
