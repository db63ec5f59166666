// The arithmetic on vectors, chosen once for the CPU we run on. With tiles_*.cpp and exact_*.cpp the only SIMD.
//
// Two kinds of kernel. The *exact* ones work in double with a fixed order of summation and no fused operations: they
// give the same bits on every CPU, and every decision between two near values is theirs. The *fast* ones work in T
// and differ from the truth by at most a known error, so they can only decide what is clear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace k2 {

// How many products the tile kernel adds before it starts a new partial sum: bounds the rounding error for any d.
inline constexpr std::size_t kDepth = 288;

// Part of the rows, in the order of a scan, and the columns [begin, end) to look at, in strips of `strip` columns
// (begin is a whole number of them). What strip c says of row i goes to c * stride + i.
template <class T>
struct ScanBlock {
  const T* data;
  std::size_t d;
  const std::uint32_t* rows;
  const double* weights;  // of the rows as listed; nullptr: all one
  std::size_t count, begin, end, strip, stride;
};

// Rows that are in several parts.
template <class T>
struct PartsBlock {
  const T* data;
  std::size_t d;
  const std::uint32_t* rows;
  const double* weights;  // of all rows; nullptr: all one
  std::size_t count;
  const std::int32_t* part;  // of each row as listed
};

// The two smallest scores of a row over all centers, and where the smallest is.
template <class T>
struct Lowest {
  T first, second;
  std::int32_t index;
};

// Who may still win a row: center j, unless its score says that its distance is at least reach * stretch_j.
template <class T>
struct Gate {
  const T *base, *slack, *stretch, *margin;  // of each center; margin: what its distance may be short of the score's
  T norm, square, reach, own_margin;         // of the row
};

template <class T>
struct Kernels {
  const char* name;

  // Exact: ||x - c||^2; x . v; both in double, fixed order.
  double (*squared_distance)(const T* x, const T* c, std::size_t d);
  double (*project)(const T* x, const double* v, std::size_t d);
  // sum += w (x - mean) over rows in order; for each row and strip, square = ||sum||^2 and spread = w ||x - mean||^2.
  void (*scan)(const ScanBlock<T>& block, const double* mean, double* sum, double* square, double* spread);
  // To d + 5 numbers of each row's part, with z = x - mean: d of sum += w z, four whose sum is spread += w ||z||^2, and
  // weight += w.
  void (*add_up)(const PartsBlock<T>& block, const double* mean, double* parts);
  // to += q, from -= q with q = round((x - mean) * w * scale), an integer: order does not matter. from may be null.
  void (*transfer)(const T* x, const double* mean, const double* scale, double w, std::int64_t* to, std::int64_t* from,
                   std::size_t d);
  // For each column of n rows on end, z being what it is above the origin: sum += w z, square += w z^2, and the
  // extremes.
  void (*extent)(const T* rows, std::size_t n, std::size_t d, const T* origin, const double* weights, double* sum,
                 double* square, T* low, T* high);
  // sum += w (x - mean), in double.
  void (*accumulate)(const T* x, const double* mean, double w, double* sum, std::size_t d);

  // Exact in the same sense, but in T: inner products as `dots` below, the same bits on every CPU.
  void (*heads)(const T* const* rows, std::size_t m, const T* panels, std::size_t count, std::size_t d, T* out,
                std::size_t stride);
  // The least of (square + (base_j - 2 dot_j)) factor_j over `count` values, whole panels.
  T (*least)(const T* dots, const T* base, const T* factor, T square, std::size_t count);
  // ||x - c||^2, no more wrong than `near` below.
  T (*steady)(const T* x, const T* c, std::size_t d);
  // score_j = base_j - 2 dot_j for `count` values, whole panels.
  void (*scores)(const T* dots, const T* base, std::size_t count, T* out);
  // The places of the m lowest of `count` values, whole panels, of equals the first: the first m of `out`, which has
  // room for `count`.
  void (*few)(const T* values, std::size_t count, std::size_t m, std::int32_t* out);

  // Fast: ||x - c||^2 in difference form, wrong by at most difference_error<T>(d) of it and underflow<T>(d).
  T (*near)(const T* x, const T* c, std::size_t d);
  T (*square)(const T* x, std::size_t d);  // ||x||^2, same error
  // The same for m centers, of which `ids` are the rows.
  void (*nears)(const T* x, const T* centers, const std::int32_t* ids, std::size_t m, std::size_t d, T* out);

  std::size_t panel;  // centers packed together
  // Element i of `panel` centers side by side, for all i < d; `shift` (or null) taken off.
  void (*pack)(const T* const* centers, const T* shift, std::size_t d, T* out);
  // Fast: inner products of `m` rows with packed panels of `panel` centers each. out[i * stride + j].
  void (*dots)(const T* const* rows, std::size_t m, const T* panels, std::size_t count, std::size_t d, T* out,
               std::size_t stride);
  // Fast: of score_j = base_j - 2 dot_j - norm * slack_j over `count` values, the two lowest merged into `best`.
  void (*lowest)(const T* dots, const T* base, const T* slack, T norm, std::size_t count, std::int32_t offset,
                 Lowest<T>* best);
  // Fast: the j of `count` with score_j < (reach * stretch_j + margin_j)^2 - square, to `out`. Returns how many.
  std::size_t (*survivors)(const T* dots, const Gate<T>& gate, std::size_t count, std::int32_t* out);
};

// The kernels for this CPU, or for the variant named by K2MEANS_SIMD (v2, v3, v4, base).
template <class T>
const Kernels<T>& kernels();

// How many rows before its use a row is asked for: short ones are done before memory answers.
template <class T>
constexpr std::size_t rows_ahead(std::size_t d) {
  return d * sizeof(T) > 512 ? 4 : 16;
}

// Ask for a row that will be read soon.
template <class T>
inline void prefetch_row(const T* x, std::size_t d) {
  for (std::size_t i = 0; i < d; i += 64 / sizeof(T)) __builtin_prefetch(x + i);
}

template <class T>
inline constexpr double kUnit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;  // unit roundoff

// What d squares or products may lose to underflow.
template <class T>
double underflow(std::size_t d) {
  return static_cast<double>(d) * static_cast<double>(std::numeric_limits<T>::min());
}

// Relative error of Kernels::near: at most d/8 sums in a row, then the lanes and the rest one by one.
template <class T>
double difference_error(std::size_t d) {
  return (static_cast<double>(d) / 8 + 48) * kUnit<T>;
}

// Error of Kernels::dots relative to ||x|| ||c||, generous enough to cover the rounding of shifted rows and norms.
template <class T>
double product_error(std::size_t d) {
  const double depth = static_cast<double>(d < kDepth ? d : kDepth);
  return (depth + static_cast<double>(d) / kDepth + 16) * kUnit<T> + static_cast<double>(d) / 8 * 0x1p-53;
}

}  // namespace k2
