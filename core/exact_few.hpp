// Which of many values are the lowest: the same answer on every CPU, however wide its vectors. Anonymous namespace
// only, see exact_impl.hpp.
#pragma once

#include "wide_impl.hpp"

namespace k2 {
namespace {
namespace wide {

// score_j = base_j - 2 dot_j.
template <class T>
void scores(const T* dots, const T* base, std::size_t count, T* out) {
  for (std::size_t j = 0; j < count; j += kLanes<T>) store(out + j, load(base + j) - 2 * load(dots + j));
}

// Of `found` places of values, ascending, those of the m lowest, of equals the first, come to the front.
template <class T>
inline void keep_lowest(const T* values, std::size_t m, std::size_t found, std::int32_t* places) {
  constexpr std::size_t L = kLanes<T>, kMost = 64;
  if (found <= kMost) {
    using Mask = decltype(V<T>{} < V<T>{});
    T value[kMost];
    for (std::size_t i = 0; i < found; ++i) value[i] = values[places[i]];
    for (std::size_t i = found; i < kMost && i % L; ++i) value[i] = static_cast<T>(__builtin_inf());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < found; i += L) {
      const V<T> v = load(value + i);
      Mask rank{}, lane{};  // rank: less one for each that comes before
      for (std::size_t l = 0; l < L; ++l) lane[l] = static_cast<int>(i + l);
      for (std::size_t j = 0; j < found; ++j) {
        rank += (value[j] < v) | ((value[j] == v) & (lane > static_cast<int>(j)));
      }
      const Mask stays = rank + static_cast<int>(m) > 0;
      for (std::size_t l = 0; l < L && i + l < found; ++l) {
        places[kept] = places[i + l];
        kept += static_cast<std::size_t>(stays[l] & 1);
      }
    }
    return;
  }
  for (std::size_t i = 0; i < found; ++i) {  // many equals: put each where it belongs among the first m
    const std::int32_t place = places[i];
    std::size_t at = i < m ? i : m;
    if (at == m && !(values[place] < values[places[m - 1]])) continue;
    if (at == m) --at;
    for (; at > 0 && values[place] < values[places[at - 1]]; --at) places[at] = places[at - 1];
    places[at] = place;
  }
}

// The places of the m lowest of `count` values, whole panels, of equals the first: the first m of `out`, which has room
// for `count`.
//
// The m-th lowest of the lanes' minima is a limit that at least m values do not exceed, and few others.
template <class T>
void few(const T* values, std::size_t count, std::size_t m, std::int32_t* out) {
  constexpr std::size_t L = kLanes<T>, W = kPanel<T>;
  const V<T> infinity = V<T>{} + static_cast<T>(__builtin_inf());
  V<T> low[2] = {infinity, infinity};
  for (std::size_t j = 0; j < count; j += W) {
    for (std::size_t h = 0; h < 2; ++h) {
      const V<T> v = load(values + j + h * L);
      low[h] = v < low[h] ? v : low[h];
    }
  }
  V<T> limit = infinity;
  if (m <= W) {
    T minima[W];
    decltype(low[0] < low[1]) below[2] = {};  // less one for each minimum that is below
    for (std::size_t h = 0; h < 2; ++h) store(minima + h * L, low[h]);
    for (std::size_t j = 0; j < W; ++j) {
      for (std::size_t h = 0; h < 2; ++h) below[h] += minima[j] < low[h];
    }
    // Those that fewer than m are below: at least m of them.
    for (std::size_t h = 0; h < 2; ++h) low[h] = below[h] + static_cast<int>(m) > 0 ? -low[h] : infinity;
    limit = V<T>{} - smallest<T>(low[0] < low[1] ? low[0] : low[1]);
  }
  std::size_t found = 0;
  for (std::size_t j = 0; j < count; j += L) found += lanes_set<T>(load(values + j) <= limit, j, out + found);
  keep_lowest(values, m, found, out);
}

}  // namespace wide
}  // namespace
}  // namespace k2
