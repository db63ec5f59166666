// The exact kernels, compiled once per CPU variant (exact_v2.cpp, ...) without fused multiply-add: sixteen running
// sums in double, always joined in the same order, so every variant gives the same bits.
// Anonymous namespace only: nothing here may be shared between variants by the linker.
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "distance.hpp"
#include "exact_few.hpp"
#include "variants.hpp"
#include "wide_impl.hpp"

namespace k2 {
namespace {

typedef double Four __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16)));
typedef std::int64_t FourInts __attribute__((vector_size(32)));

inline Four load(const double* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Four load(const float* p) {
  FourFloats v;
  std::memcpy(&v, p, sizeof v);
#if defined(__AVX__)
  return _mm256_cvtps_pd(v);  // gcc 12 makes five instructions of __builtin_convertvector
#else
  return __builtin_convertvector(v, Four);
#endif
}
inline void store(double* p, Four v) { std::memcpy(p, &v, sizeof v); }

inline double join(Four a, Four b, Four c, Four d) {
  const Four s = (a + b) + (c + d);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

template <class T>
double squared_distance(const T* x, const T* c, std::size_t d) {
  Four s0{}, s1{}, s2{}, s3{};
  std::size_t i = 0;
  for (; i + 16 <= d; i += 16) {
    const Four a0 = load(x + i) - load(c + i), a1 = load(x + i + 4) - load(c + i + 4);
    const Four a2 = load(x + i + 8) - load(c + i + 8), a3 = load(x + i + 12) - load(c + i + 12);
    s0 += a0 * a0, s1 += a1 * a1, s2 += a2 * a2, s3 += a3 * a3;
  }
  double tail = 0.0;
  for (; i < d; ++i) {
    const double a = static_cast<double>(x[i]) - static_cast<double>(c[i]);
    tail += a * a;
  }
  return join(s0, s1, s2, s3) + tail;
}

template <class T>
double project(const T* x, const double* v, std::size_t d) {
  Four s0{}, s1{}, s2{}, s3{};
  std::size_t i = 0;
  for (; i + 16 <= d; i += 16) {
    s0 += load(x + i) * load(v + i), s1 += load(x + i + 4) * load(v + i + 4);
    s2 += load(x + i + 8) * load(v + i + 8), s3 += load(x + i + 12) * load(v + i + 12);
  }
  double tail = 0.0;
  for (; i < d; ++i) tail += static_cast<double>(x[i]) * v[i];
  return join(s0, s1, s2, s3) + tail;
}

// One row on one strip of columns: sum += w z, and the squares of both.
template <class T, bool Weighted>
inline void scan_strip(const T* x, const double* mean, double* sum, std::size_t width, double w, double* square,
                       double* spread) {
  Four p0{}, p1{}, z0{}, z1{};
  std::size_t i = 0;
  for (; i + 8 <= width; i += 8) {
    const Four a0 = load(x + i) - load(mean + i), a1 = load(x + i + 4) - load(mean + i + 4);
    const Four s0 = load(sum + i) + (Weighted ? w * a0 : a0), s1 = load(sum + i + 4) + (Weighted ? w * a1 : a1);
    store(sum + i, s0), store(sum + i + 4, s1);
    p0 += s0 * s0, p1 += s1 * s1, z0 += a0 * a0, z1 += a1 * a1;
  }
  double p = 0.0, z = 0.0;
  for (; i < width; ++i) {
    const double a = static_cast<double>(x[i]) - mean[i];
    sum[i] += Weighted ? w * a : a;
    p += sum[i] * sum[i], z += a * a;
  }
  p0 += p1, z0 += z1;
  *square = ((p0[0] + p0[1]) + (p0[2] + p0[3])) + p;
  *spread = (((z0[0] + z0[1]) + (z0[2] + z0[3])) + z) * (Weighted ? w : 1.0);
}

template <class T, bool Weighted>
inline void scan_rows(const ScanBlock<T>& b, const double* mean, double* sum, double* square, double* spread) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  const std::size_t ahead = rows_ahead<T>(b.d);
  for (std::size_t i = 0; i < b.count; ++i) {
    if (i + ahead < b.count) {
      const T* next = b.data + b.rows[i + ahead] * b.d;
      for (std::size_t c = b.begin; c < b.end; c += kLine) __builtin_prefetch(next + c);
    }
    const T* x = b.data + b.rows[i] * b.d;
    for (std::size_t c = b.begin; c < b.end; c += b.strip) {
      const std::size_t width = b.end - c < b.strip ? b.end - c : b.strip, at = c / b.strip * b.stride + i;
      scan_strip<T, Weighted>(x + c, mean + c, sum + c, width, Weighted ? b.weights[i] : 1.0, square + at, spread + at);
    }
  }
}

template <class T>
void scan(const ScanBlock<T>& b, const double* mean, double* sum, double* square, double* spread) {
  b.weights ? scan_rows<T, true>(b, mean, sum, square, spread) : scan_rows<T, false>(b, mean, sum, square, spread);
}

template <class T>
void add_up(const PartsBlock<T>& b, const double* mean, double* parts) {
  const std::size_t ahead = rows_ahead<T>(b.d);
  for (std::size_t i = 0; i < b.count; ++i) {
    if (i + ahead < b.count) prefetch_row(b.data + b.rows[i + ahead] * b.d, b.d);
    const T* x = b.data + b.rows[i] * b.d;
    double *sum = parts + static_cast<std::size_t>(b.part[i]) * (b.d + 5), *spread = sum + b.d;
    const double w = b.weights ? b.weights[b.rows[i]] : 1.0;
    Four squares = load(spread);
    std::size_t c = 0;
    for (; c + 4 <= b.d; c += 4) {
      const Four z = load(x + c) - load(mean + c), wz = w * z;
      store(sum + c, load(sum + c) + wz);
      squares += wz * z;
    }
    store(spread, squares);
    for (; c < b.d; ++c) {
      const double z = static_cast<double>(x[c]) - mean[c], wz = w * z;
      sum[c] += wz, spread[0] += wz * z;
    }
    spread[4] += w;
  }
}

// Adding 1.5 * 2^52 leaves round(y) in the low bits of the double: valid for |y| < 2^51, which the scale guarantees.
constexpr double kMagic = 0x1.8p52;

inline std::int64_t bits(double y) {
  std::int64_t b;
  std::memcpy(&b, &y, sizeof b);
  return b;
}

template <class T>
void transfer(const T* x, const double* mean, const double* scale, double w, std::int64_t* to, std::int64_t* from,
              std::size_t d) {
  const std::int64_t zero = bits(kMagic);
  std::size_t i = 0;
  for (; i + 4 <= d; i += 4) {
    const Four y = (load(x + i) - load(mean + i)) * (w * load(scale + i)) + kMagic;
    FourInts q, t;
    std::memcpy(&q, &y, sizeof q);
    q -= zero;
    std::memcpy(&t, to + i, sizeof t);
    t += q;
    std::memcpy(to + i, &t, sizeof t);
    if (!from) continue;
    std::memcpy(&t, from + i, sizeof t);
    t -= q;
    std::memcpy(from + i, &t, sizeof t);
  }
  for (; i < d; ++i) {
    const std::int64_t q = bits((static_cast<double>(x[i]) - mean[i]) * (w * scale[i]) + kMagic) - zero;
    to[i] += q;
    if (from) from[i] -= q;
  }
}

template <class T>
void accumulate(const T* x, const double* mean, double w, double* sum, std::size_t d) {
  std::size_t i = 0;
  for (; i + 4 <= d; i += 4) store(sum + i, load(sum + i) + w * (load(x + i) - load(mean + i)));
  for (; i < d; ++i) sum[i] += w * (static_cast<double>(x[i]) - mean[i]);
}

// M rows, so that sums need not be loaded and stored for each.
template <class T, bool Weighted, std::size_t M>
inline void extent_of(const T* rows, std::size_t d, const T* origin, const double* weights, double* sum, double* square,
                      T* low, T* high) {
  typedef T FourOf __attribute__((vector_size(4 * sizeof(T))));
  std::size_t i = 0;
  for (; i + 4 <= d; i += 4) {
    const Four from = load(origin + i);
    Four s = load(sum + i), q = load(square + i);
    FourOf l, h;
    std::memcpy(&l, low + i, sizeof l), std::memcpy(&h, high + i, sizeof h);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < M; ++r) {
      FourOf v;
      std::memcpy(&v, rows + r * d + i, sizeof v);
      const Four z = load(rows + r * d + i) - from, wz = Weighted ? weights[r] * z : z;
      s += wz, q += wz * z;
      l = v < l ? v : l, h = v > h ? v : h;
    }
    store(sum + i, s), store(square + i, q);
    std::memcpy(low + i, &l, sizeof l), std::memcpy(high + i, &h, sizeof h);
  }
  for (; i < d; ++i) {
    for (std::size_t r = 0; r < M; ++r) {
      const T v = rows[r * d + i];
      const double z = static_cast<double>(v) - static_cast<double>(origin[i]), wz = Weighted ? weights[r] * z : z;
      sum[i] += wz, square[i] += wz * z;
      low[i] = v < low[i] ? v : low[i], high[i] = v > high[i] ? v : high[i];
    }
  }
}

template <class T, bool Weighted>
inline void extent_of_all(const T* rows, std::size_t n, std::size_t d, const T* origin, const double* weights,
                          double* sum, double* square, T* low, T* high) {
  constexpr std::size_t kRows = 8;
  std::size_t r = 0;
  for (; r + kRows <= n; r += kRows) {
    extent_of<T, Weighted, kRows>(rows + r * d, d, origin, Weighted ? weights + r : nullptr, sum, square, low, high);
  }
  for (; r < n; ++r)
    extent_of<T, Weighted, 1>(rows + r * d, d, origin, Weighted ? weights + r : nullptr, sum, square, low, high);
}

template <class T>
void extent(const T* rows, std::size_t n, std::size_t d, const T* origin, const double* weights, double* sum,
            double* square, T* low, T* high) {
  weights ? extent_of_all<T, true>(rows, n, d, origin, weights, sum, square, low, high)
          : extent_of_all<T, false>(rows, n, d, origin, weights, sum, square, low, high);
}

template <class T>
void fill(Kernels<T>& table) {
  table.squared_distance = squared_distance<T>;
  table.project = project<T>;
  table.scan = scan<T>;
  table.add_up = add_up<T>;
  table.transfer = transfer<T>;
  table.accumulate = accumulate<T>;
  table.extent = extent<T>;
  table.heads = wide::dots<T>;
  table.least = wide::least<T>;
  table.steady = wide::steady<T>;
  table.scores = wide::scores<T>;
  table.few = wide::few<T>;
}

}  // namespace

void K2_VARIANT_NAME(exact)(Kernels<float>& f, Kernels<double>& d) {
  fill(f);
  fill(d);
}

}  // namespace k2
