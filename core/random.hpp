// Random numbers from a key, not from a state: the same for any order of asking.
#pragma once

#include <cstdint>

namespace k2 {

class Random {
 public:
  explicit Random(std::uint64_t key) : state_(key) {}
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed ^ mix(stream))) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }  // splitmix64
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t n) {  // unbiased: redraw the incomplete last round
    const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n;
    for (;;) {
      const std::uint64_t b = bits();
      if (b < limit) return b % n;
    }
  }
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace k2
