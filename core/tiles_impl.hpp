// The fast kernels, compiled once per CPU variant (tiles_v2.cpp, ...) with fused multiply-add where the CPU has it.
// Rows are read in place; centers come packed: panel p holds element i of its centers side by side, so a tile of
// kTall rows times one panel lives in registers. Anonymous namespace only, see exact_impl.hpp.
#include <utility>

#include "distance.hpp"
#include "variants.hpp"
#include "wide_impl.hpp"

namespace k2 {
namespace {

using namespace wide;

// The sum of squares of d values: at(i) gives those from i on as a vector, at_one(i) the one at i.
template <class T, class At, class AtOne>
inline T sum_of_squares(std::size_t d, At at, AtOne at_one) {
  constexpr std::size_t L = kLanes<T>;
  V<T> s0{}, s1{}, s2{}, s3{};
  std::size_t i = 0;
  for (; i + 4 * L <= d; i += 4 * L) {
    const V<T> a0 = at(i), a1 = at(i + L), a2 = at(i + 2 * L), a3 = at(i + 3 * L);
    s0 += a0 * a0, s1 += a1 * a1, s2 += a2 * a2, s3 += a3 * a3;
  }
  for (; i + L <= d; i += L) {
    const V<T> a = at(i);
    s0 += a * a;
  }
  T tail = 0;
  for (; i < d; ++i) tail += at_one(i) * at_one(i);
  return total<T>((s0 + s1) + (s2 + s3)) + tail;
}

template <class T>
T near(const T* x, const T* c, std::size_t d) {
  return sum_of_squares<T>(
      d, [=](std::size_t i) { return load(x + i) - load(c + i); }, [=](std::size_t i) { return x[i] - c[i]; });
}

template <class T>
void nears(const T* x, const T* centers, const std::int32_t* ids, std::size_t m, std::size_t d, T* out) {
  for (std::size_t j = 0; j < m; ++j) out[j] = near<T>(x, centers + static_cast<std::size_t>(ids[j]) * d, d);
}

template <class T>
T square(const T* x, std::size_t d) {
  return sum_of_squares<T>(d, [=](std::size_t i) { return load(x + i); }, [=](std::size_t i) { return x[i]; });
}

// a0 b0 a1 b1 ... from the low halves of a and b (From = 0) or the high ones (From = half the lanes).
template <class T, int From, std::size_t... I>
inline V<T> zip(V<T> a, V<T> b, std::index_sequence<I...>) {
  constexpr int L = static_cast<int>(kLanes<T>);
  return __builtin_shufflevector(a, b, (From + static_cast<int>(I) / 2 + (I % 2 ? L : 0))...);
}

// Zipping the first half of the rows with the second, log2(lanes) times over, transposes a square block.
template <class T>
inline void transpose(V<T>* v) {
  constexpr std::size_t L = kLanes<T>;
  constexpr auto lanes = std::make_index_sequence<L>();
  for (std::size_t round = 1; round < L; round *= 2) {
    V<T> z[L];
    for (std::size_t r = 0; r < L / 2; ++r) {
      z[2 * r] = zip<T, 0>(v[r], v[r + L / 2], lanes);
      z[2 * r + 1] = zip<T, L / 2>(v[r], v[r + L / 2], lanes);
    }
    for (std::size_t r = 0; r < L; ++r) v[r] = z[r];
  }
}

template <class T>
void pack(const T* const* centers, const T* shift, std::size_t d, T* out) {
  constexpr std::size_t L = kLanes<T>;
  std::size_t i = 0;
  for (; i + L <= d; i += L) {
    const V<T> off = shift ? load(shift + i) : V<T>{};
    for (std::size_t half = 0; half < 2; ++half) {
      V<T> v[L];
      for (std::size_t r = 0; r < L; ++r) v[r] = load(centers[half * L + r] + i) - off;
      transpose<T>(v);
      for (std::size_t r = 0; r < L; ++r) store(out + (i + r) * 2 * L + half * L, v[r]);
    }
  }
  for (; i < d; ++i) {
    for (std::size_t j = 0; j < 2 * L; ++j) out[i * 2 * L + j] = centers[j][i] - (shift ? shift[i] : T(0));
  }
}

template <class T>
void lowest(const T* dots, const T* base, const T* slack, T norm, std::size_t count, std::int32_t offset,
            Lowest<T>* best) {
  constexpr std::size_t L = kLanes<T>;
  const V<T> infinity = V<T>{} + static_cast<T>(__builtin_inf());
  V<T> first = infinity, second = infinity, where{};
  for (std::size_t j = 0; j < count; j += L) {  // count is a whole number of panels
    const V<T> score = load(base + j) - 2 * load(dots + j) - norm * load(slack + j);
    const auto less = score < first;
    const V<T> rest = less ? first : score;
    second = rest < second ? rest : second;
    where = less ? V<T>{} + static_cast<T>(j) : where;
    first = less ? score : first;
  }
  for (std::size_t l = 0; l < L; ++l) {
    if (first[l] < best->first) {
      best->second = best->first;
      best->first = first[l];
      best->index = offset + static_cast<std::int32_t>(where[l]) + static_cast<std::int32_t>(l);
    } else if (first[l] < best->second) {
      best->second = first[l];
    }
    if (second[l] < best->second) best->second = second[l];
  }
}

template <class T>
std::size_t survivors(const T* dots, const Gate<T>& gate, std::size_t count, std::int32_t* out) {
  constexpr std::size_t L = kLanes<T>;
  auto nears = [&](std::size_t j) {
    const V<T> score = load(gate.base + j) - 2 * load(dots + j) - gate.norm * load(gate.slack + j);
    const V<T> far = gate.reach * load(gate.stretch + j) + (load(gate.margin + j) + gate.own_margin);
    return score + gate.square < far * far;
  };
  std::size_t found = 0;
  for (std::size_t j = 0; j < count; j += 2 * L) {  // count is a whole number of panels
    const auto first = nears(j), second = nears(j + L);
    if (!any(first | second)) continue;
    found += lanes_set<T>(first, j, out + found);
    found += lanes_set<T>(second, j + L, out + found);
  }
  return found;
}

template <class T>
void fill(Kernels<T>& table) {
  table.near = near<T>;
  table.square = square<T>;
  table.nears = nears<T>;
  table.panel = kPanel<T>;
  table.pack = pack<T>;
  table.dots = dots<T>;
  table.lowest = lowest<T>;
  table.survivors = survivors<T>;
}

}  // namespace

void K2_VARIANT_NAME(tiles)(Kernels<float>& f, Kernels<double>& d) {
  fill(f);
  fill(d);
}

}  // namespace k2
