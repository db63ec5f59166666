// The sketch of a vector: its coordinates along the few directions in which the data is widest, and the length of the
// rest. Two vectors are at least as far apart as their sketches: with V the directions and r(x) the rest of x,
//   ||x - c||^2 = ||V'(x - c)||^2 + ||r(x) - r(c)||^2 >= ||V'(x - c)||^2 + (||r(x)|| - ||r(c)||)^2.
// So a short product says of most centers that they are too far, and needs no memory of earlier iterations.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "axes.hpp"
#include "distance.hpp"
#include "large.hpp"
#include "parallel.hpp"
#include "survey.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class Sketch {
 public:
  static constexpr std::size_t kWidth = 32;  // numbers in a sketch, the last of them the length of the rest

  // `used_for`: how many rows will be sketched along these directions, if it is more than those of x.
  Sketch(Rows<const T> x, const Survey& survey, std::uint64_t seed, Pool& pool, std::size_t used_for = 0)
      : d_(x.d), mean_(survey.mean.begin(), survey.mean.end()), margin_(x.n) {
    const std::size_t panel = kernel_.panel, padded = (kWidth + panel - 1) / panel * panel;
    const PrincipalAxes<T> axes(x, survey.mean, kWidth - 1, seed, std::max(x.n, used_for), pool);
    std::vector<T> directions(axes.directions().begin(), axes.directions().end());
    directions.resize(padded * d_, T(0));
    packed_.resize(padded * d_);
    for (std::size_t p = 0; p < padded; p += panel) {
      const T* c[64];
      for (std::size_t j = 0; j < panel; ++j) c[j] = directions.data() + (p + j) * d_;
      kernel_.pack(c, nullptr, d_, packed_.data() + p * d_);
    }
    offset_.resize(kWidth);
    const std::vector<double> mean(mean_.begin(), mean_.end());
    for (std::size_t j = 0; j < kWidth; ++j) offset_[j] = kernel_.project(directions.data() + j * d_, mean.data(), d_);
    far_ = std::sqrt(static_cast<double>(kernel_.square(mean_.data(), d_))) * 1.001;
    value_.resize(x.n * kWidth);
    of(x, value_.data(), margin_.data(), pool);
    double head = 0.0, rest = 0.0;
    for (std::size_t i = 0; i < x.n; i += std::max<std::size_t>(1, x.n / 1024)) {
      const T* s = value_.data() + i * kWidth;
      for (std::size_t j = 0; j + 1 < kWidth; ++j) head += static_cast<double>(s[j]) * static_cast<double>(s[j]);
      rest += static_cast<double>(s[kWidth - 1]) * static_cast<double>(s[kWidth - 1]);
    }
    caught_ = head + rest > 0 ? head / (head + rest) : 1.0;
  }

  // Sketches of other rows along the directions of `like`, as fast as can be: not the same bits on every CPU.
  Sketch(const Sketch& like, Rows<const T> x, Pool& pool)
      : d_(like.d_),
        fused_(true),
        mean_(like.mean_),
        packed_(like.packed_),
        value_(x.n * kWidth),
        margin_(x.n),
        offset_(like.offset_),
        far_(like.far_),
        caught_(like.caught_) {
    of(x, value_.data(), margin_.data(), pool);
  }

  // The part of the data's energy that lies along the directions.
  double caught() const { return caught_; }
  std::size_t d() const { return d_; }
  Rows<const T> rows() const { return {value_.data(), margin_.size(), kWidth}; }
  const Large<T>& margin() const { return margin_; }

  // Sketches of any points, and how far each may be from the true one.
  void of(Rows<const T> points, T* sketches, T* margins, Pool& pool) const {
    pool.for_chunks(points.n, kBlock,
                    [&](std::size_t a, std::size_t b, int) { block(points, a, b, sketches, margins); });
  }

 private:
  static constexpr std::size_t kBlock = 48;

  void block(Rows<const T> points, std::size_t a, std::size_t b, T* sketches, T* margins) const {
    const std::size_t padded = packed_.size() / d_, w = kWidth;
    T products[kBlock * 64];
    const T* rows[kBlock];
    for (std::size_t i = a; i < b; ++i) rows[i - a] = points[i];
    (fused_ ? kernel_.dots : kernel_.heads)(rows, b - a, packed_.data(), padded / kernel_.panel, d_, products, padded);
    const double unit = kUnit<T>, loss = std::sqrt(static_cast<double>(w)) * (product_error<T>(d_) + 8 * unit);
    for (std::size_t i = a; i < b; ++i) {
      const double square = static_cast<double>((fused_ ? kernel_.near : kernel_.steady)(points[i], mean_.data(), d_));
      const double norm = std::sqrt(square);
      T* s = sketches + i * w;
      double head = 0.0;
      for (std::size_t j = 0; j + 1 < w; ++j) {
        s[j] = static_cast<T>(static_cast<double>(products[(i - a) * padded + j]) - offset_[j]);
        head += static_cast<double>(s[j]) * static_cast<double>(s[j]);
      }
      const double lost = loss * (norm * 1.001 + far_) + underflow<T>(d_);
      const double blur = 2 * difference_error<T>(d_) * square + (2 * std::sqrt(head) + lost) * lost + underflow<T>(d_);
      const double low = std::sqrt(std::max(0.0, square - head - blur));
      const double high = std::sqrt(std::max(0.0, square - head) + blur);
      s[w - 1] = static_cast<T>((low + high) / 2);
      margins[i] = static_cast<T>((lost + (high - low) / 2 + high * 2 * unit) * 1.001);
    }
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::size_t d_;
  bool fused_ = false;
  std::vector<T> mean_, packed_;
  Large<T> value_, margin_;
  std::vector<double> offset_;
  double far_ = 0.0, caught_ = 0.0;
};

}  // namespace k2
