// Rows by their values, in the order std::sort gives pairs of both, by radix.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "types.hpp"

namespace k2 {

// Four passes over the bytes of the values as floats; then what these cannot tell apart is sorted as it is.
class ValueSort {
 public:
  using Entry = std::pair<double, Row>;

  void operator()(std::span<Entry> entries) {
    const std::size_t m = entries.size();
    if (m < kFew) return std::sort(entries.begin(), entries.end());
    grow(keys_, m), grow(next_, m);
    before_.assign(entries.begin(), entries.end());
    std::array<std::array<std::uint32_t, 256>, 4> counts{};
    for (std::size_t i = 0; i < m; ++i) {
      const std::uint32_t key = rank(entries[i].first);
      keys_[i] = std::uint64_t{key} << 32 | i;
      for (unsigned byte = 0; byte < 4; ++byte) ++counts[byte][key >> (8 * byte) & 255];
    }
    for (unsigned byte = 0; byte < 4; ++byte) pass(m, 32 + 8 * byte, counts[byte]);
    for (std::size_t i = 0; i < m; ++i) entries[i] = before_[static_cast<std::uint32_t>(keys_[i])];
    for (std::size_t a = 0, b; a < m; a = b) {
      for (b = a + 1; b < m && keys_[b] >> 32 == keys_[a] >> 32;) ++b;
      if (b > a + 1) std::sort(entries.begin() + a, entries.begin() + b);
    }
  }

 private:
  static constexpr std::size_t kFew = 96;

  // Ordered as the value is, up to rounding.
  static std::uint32_t rank(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) + 0.0F);  // no zero below zero
    return bits >> 31 ? ~bits : bits | 0x80000000U;
  }

  void pass(std::size_t m, unsigned shift, std::array<std::uint32_t, 256>& counts) {
    if (std::find(counts.begin(), counts.end(), m) != counts.end()) return;  // all have the same byte
    std::uint32_t place = 0;
    for (std::uint32_t& count : counts) count = std::exchange(place, place + count);
    for (std::size_t i = 0; i < m; ++i) next_[counts[keys_[i] >> shift & 255]++] = keys_[i];
    keys_.swap(next_);
  }

  std::vector<std::uint64_t> keys_, next_;
  std::vector<Entry> before_;
};

}  // namespace k2
