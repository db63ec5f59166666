// Vectors as wide as the CPU's, the tile of inner products they make, and the least of what these tell. Compiled twice
// for each variant: fused in tiles_*.cpp, and without fusing in exact_*.cpp. Each product of a row and a center is a
// sum of its own, in the order of the columns; so the unfused one has the same bits on every CPU. Anonymous namespace
// only, see exact_impl.hpp.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstring>

#include "distance.hpp"

namespace k2 {
namespace {
namespace wide {

#if defined(__AVX512F__)
constexpr std::size_t kBytes = 64, kTall = 12;
#elif defined(__AVX__)
constexpr std::size_t kBytes = 32, kTall = 6;
#elif defined(__aarch64__)
constexpr std::size_t kBytes = 16, kTall = 8;
#else
constexpr std::size_t kBytes = 16, kTall = 6;
#endif

template <class T>
struct Vec {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr std::size_t lanes = kBytes / sizeof(T);
};
template <class T>
using V = typename Vec<T>::type;
template <class T>
constexpr std::size_t kLanes = Vec<T>::lanes;
template <class T>
constexpr std::size_t kPanel = 2 * kLanes<T>;

template <class T>
inline V<T> load(const T* p) {
  V<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(T* p, V<T> v) {
  std::memcpy(p, &v, sizeof v);
}
// out[r][0..kPanel) (+)= rows[r][0..depth) . panel, for M rows at once.
template <class T, std::size_t M>
inline void tile(const T* const* rows, std::size_t first, const T* panel, std::size_t depth, bool fresh, T* out,
                 std::size_t stride) {
  constexpr std::size_t L = kLanes<T>;
  const T* x[M];
  V<T> a[M], b[M];
  for (std::size_t r = 0; r < M; ++r) x[r] = rows[r] + first, a[r] = V<T>{}, b[r] = V<T>{};
  for (std::size_t i = 0; i < depth; ++i) {
    const V<T> c0 = load(panel), c1 = load(panel + L);
    panel += 2 * L;
#pragma GCC unroll 12
    for (std::size_t r = 0; r < M; ++r) {
      const T v = x[r][i];
      a[r] += v * c0;
      b[r] += v * c1;
    }
  }
  for (std::size_t r = 0; r < M; ++r) {
    T* o = out + r * stride;
    store(o, fresh ? a[r] : load(o) + a[r]);
    store(o + L, fresh ? b[r] : load(o + L) + b[r]);
  }
}

template <class T, std::size_t M>
inline void last_rows(std::size_t m, const T* const* rows, std::size_t first, const T* panel, std::size_t depth,
                      bool fresh, T* out, std::size_t stride) {
  if constexpr (M > 0) {
    if (m == M) return tile<T, M>(rows, first, panel, depth, fresh, out, stride);
    last_rows<T, M - 1>(m, rows, first, panel, depth, fresh, out, stride);
  }
}

template <class T>
void dots(const T* const* rows, std::size_t m, const T* panels, std::size_t count, std::size_t d, T* out,
          std::size_t stride) {
  const std::size_t slices = (d + kDepth - 1) / kDepth, even = (d + slices - 1) / slices;
  for (std::size_t first = 0; first < d; first += even) {
    const std::size_t depth = d - first < even ? d - first : even;
    for (std::size_t p = 0; p < count; ++p) {
      const T* panel = panels + (p * d + first) * kPanel<T>;
      T* o = out + p * kPanel<T>;
      std::size_t r = 0;
      for (; r + kTall <= m; r += kTall) {
        tile<T, kTall>(rows + r, first, panel, depth, first == 0, o + r * stride, stride);
      }
      last_rows<T, kTall - 1>(m - r, rows + r, first, panel, depth, first == 0, o + r * stride, stride);
    }
  }
}

// The smallest lane, by halves.
template <class T, class V>
inline T smallest(V v) {
  if constexpr (sizeof(V) == 2 * sizeof(T)) {
    return v[0] < v[1] ? v[0] : v[1];
  } else {
    typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
    Half halves[2];
    std::memcpy(halves, &v, sizeof v);
    return smallest<T>(halves[0] < halves[1] ? halves[0] : halves[1]);
  }
}

// The least of (square + (base_j - 2 dot_j)) factor_j: the same bits on every CPU, if nothing is fused.
template <class T>
T least(const T* dots, const T* base, const T* factor, T square, std::size_t count) {
  V<T> best = V<T>{} + static_cast<T>(__builtin_inf());
  for (std::size_t j = 0; j < count; j += kLanes<T>) {
    const V<T> v = (square + (load(base + j) - 2 * load(dots + j))) * load(factor + j);
    best = v < best ? v : best;
  }
  return smallest<T>(best);
}

// Is any lane set?
template <class M>
inline bool any(const M& mask) {
  std::int64_t words[sizeof(M) / 8], all = 0;
  std::memcpy(words, &mask, sizeof mask);
  for (const std::int64_t w : words) all |= w;
  return all != 0;
}

// The numbers of the lanes that are set, counted from `from` on, to `out`, where there is room for all. Returns how
// many.
template <class T, class M>
inline std::size_t lanes_set(const M& mask, std::size_t from, std::int32_t* out) {
  std::size_t found = 0;
  for (std::size_t l = 0; l < kLanes<T>; ++l) {  // a jump for each would be guessed wrong as often as not
    out[found] = static_cast<std::int32_t>(from + l);
    found += static_cast<std::size_t>(mask[l] & 1);
  }
  return found;
}
#if defined(__AVX512F__) && defined(__AVX512DQ__)
template <>
inline std::size_t lanes_set<float>(const decltype(V<float>{} < V<float>{})& mask, std::size_t from,
                                    std::int32_t* out) {
  const __mmask16 set = _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(from)));
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(set, numbers));
  return static_cast<std::size_t>(__builtin_popcount(set));
}
#endif

// The sum of the lanes, by halves.
template <class T, class V>
inline T total(V v) {
  if constexpr (sizeof(V) == 2 * sizeof(T)) {
    return v[0] + v[1];
  } else {
    typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
    Half halves[2];
    std::memcpy(halves, &v, sizeof v);
    return total<T>(halves[0] + halves[1]);
  }
}

// ||x - c||^2, in sums over every kStripes-th column, however wide the vectors are: the same bits on every CPU.
template <class T>
T steady(const T* x, const T* c, std::size_t d) {
  constexpr std::size_t L = kLanes<T>, kStripes = 32, kVectors = kStripes / L;
  V<T> sum[kVectors] = {};
  std::size_t i = 0;
  for (; i + kStripes <= d; i += kStripes) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const V<T> a = load(x + i + v * L) - load(c + i + v * L);
      sum[v] += a * a;
    }
  }
  if (i < d) {
    T stripes[kStripes];
    for (std::size_t v = 0; v < kVectors; ++v) store(stripes + v * L, sum[v]);
    for (; i < d; ++i) stripes[i % kStripes] += (x[i] - c[i]) * (x[i] - c[i]);
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = load(stripes + v * L);
  }
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) sum[v] += sum[v + half];
  }
  return total<T>(sum[0]);
}

}  // namespace wide
}  // namespace
}  // namespace k2
