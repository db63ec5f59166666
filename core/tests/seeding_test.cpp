// Greedy division and k-means++ on plain and on degenerate data: they end, agree with themselves, and lose no cluster.
#include <set>

#include "check.hpp"
#include "data.hpp"
#include "engines.hpp"

namespace {

using data::Matrix;
using k2::Label;

template <class T>
std::size_t distinct_rows(const Matrix<T>& x) {
  std::set<std::vector<T>> rows;
  for (std::size_t i = 0; i < x.n; ++i) rows.emplace(x[i], x[i] + x.d);
  return rows.size();
}

template <class T>
void check_division(const Matrix<T>& x, std::size_t k, const double* weights, bool fast = false) {
  k2::Division<T> first;
  const std::size_t distinct = distinct_rows(x);
  for (const int threads : {1, 3}) {
    k2::Pool pool(threads);
    const auto survey = k2::survey_rows(x.rows(), weights, pool);
    const auto g = k2::GreedyDivision<T>(x.rows(), weights, 11, 2)(k, survey, pool, fast);
    CHECK(g.found == std::min(k, distinct));
    CHECK(g.centers.size() == k * x.d && g.labels.size() == x.n);
    std::vector<double> weight(k, 0.0), sum(k * x.d, 0.0);
    double reach = 0.0;
    for (std::size_t i = 0; i < x.n; ++i) {
      const auto l = static_cast<std::size_t>(g.labels[i]);
      CHECK(g.labels[i] >= 0 && l < g.found);
      weight[l] += weights ? weights[i] : 1.0;
      for (std::size_t c = 0; c < x.d; ++c) {
        sum[l * x.d + c] += (weights ? weights[i] : 1.0) * static_cast<double>(x[i][c]);
        reach = std::max(reach, std::abs(static_cast<double>(x[i][c])));
      }
    }
    for (std::size_t l = 0; l < g.found; ++l) {
      CHECK(weight[l] > 0);
      for (std::size_t c = 0; c < x.d; ++c) {
        const double want = sum[l * x.d + c] / weight[l], got = static_cast<double>(g.centers[l * x.d + c]);
        // half a digit of T, and two sums of n roundings as large as the data reach
        CHECK(std::abs(got - want) <= std::abs(want) * k2::kUnit<T> + static_cast<double>(x.n) * reach * 0x1p-49);
      }
    }
    for (const T v : g.centers) CHECK(std::isfinite(v));
    // A tree of planes multiplies a row with each, and adds it up once.
    CHECK((fast ? g.ops.products >= g.ops.additions : g.ops.products == g.ops.additions));
    CHECK(g.ops.additions == g.ops.distances);
    if (threads == 1) {
      first = g;
    } else {
      CHECK(g.labels == first.labels && g.centers == first.centers && g.ops.sorts == first.ops.sorts);
    }
  }
}

template <class T>
void check_divisions() {
  const auto x = data::blobs<T>(500, 70, 6, 1);
  std::vector<double> weights(x.n);
  for (std::size_t i = 0; i < x.n; ++i) weights[i] = 0.5 + static_cast<double>(i % 4);
  for (const std::size_t k : {1u, 2u, 40u, 500u}) {
    check_division(x, k, nullptr);
    check_division(x, k, weights.data());
  }
  check_division(data::grid<T>(300, 2, 3, 2), 20, nullptr);  // nine distinct rows
  check_division(data::grid<T>(300, 1, 2, 2), 300, nullptr);
  check_division(Matrix<T>(200, 5), 7, nullptr);  // one
  check_division(data::blobs<T>(1, 3, 1, 1), 1, nullptr);
  auto far = data::grid<T>(250, 3, 5, 4);
  for (T& v : far.value) v += T(1 << 20);
  check_division(far, 60, nullptr);
  Matrix<T> needle(400, 2);  // all rows equal but one
  needle[123][1] = T(1e-3);
  check_division(needle, 3, nullptr);
}
TEST(divisions_are_whole_and_the_same_for_all_threads) {
  check_divisions<float>();
  check_divisions<double>();
}

TEST(a_large_division_is_the_same_for_all_threads) {
  // 2^21 values and more rows than a sorted chunk or a panel of the scan: all threads work on one split
  const auto x = data::blobs<float>(33000, 64, 5, 1);
  check_division(x, 4, nullptr);
}

template <class T>
void check_fast_divisions() {
  const auto x = data::blobs<T>(40000, 5, 30, 3);
  std::vector<double> weights(x.n);
  for (std::size_t i = 0; i < x.n; ++i) weights[i] = 0.5 + static_cast<double>(i % 4);
  check_division(x, 60, nullptr, true);
  check_division(x, 60, weights.data(), true);
  weights[7] = 1e12;  // a half of next to no weight
  check_division(x, 60, weights.data(), true);
  check_division(data::grid<T>(20000, 2, 3, 2), 20, nullptr, true);  // nine distinct rows
  Matrix<T> needles(9000, 2);                                        // a sample has none of these
  needles[77][1] = needles[8000][0] = T(1);
  check_division(needles, 5, nullptr, true);
}
TEST(fast_divisions_are_whole_and_the_same_for_all_threads) {
  check_fast_divisions<float>();
  check_fast_divisions<double>();
}

// On one column there is only one line. The best cut of a sample of m rows is off by some 1/sqrt(m) of them, which
// costs some 1/m of the energy, where it is lowest.
TEST(a_cut_found_on_a_sample_is_nearly_the_best) {
  for (const std::size_t n : {4096u, 50000u}) {
    const auto x = data::blobs<float>(n, 1, 3, n);
    double energy[2];
    for (const bool fast : {false, true}) {
      k2::Pool pool(2);
      const auto whole = k2::half_of(x.rows(), nullptr, n, [](std::size_t i) { return i; });
      std::vector<k2::Row> rows(n);
      std::iota(rows.begin(), rows.end(), k2::Row(0));
      const auto cut = k2::SampledSplit<float>(x.rows(), nullptr, fast)(rows, whole, 2, 1, k2::Random(1), pool);
      const auto a = k2::half_of(x.rows(), nullptr, cut.left, [&](std::size_t i) { return rows[i]; });
      const auto b = k2::half_of(x.rows(), nullptr, n - cut.left, [&](std::size_t i) { return rows[cut.left + i]; });
      CHECK(std::abs(cut.a.energy - a.energy) <= 1e-9 * whole.energy && cut.a.weight == a.weight);
      CHECK(std::abs(cut.b.energy - b.energy) <= 1e-9 * whole.energy && cut.b.weight == b.weight);
      CHECK(std::abs(cut.a.mean[0] - a.mean[0]) <= 1e-9 && std::abs(cut.b.mean[0] - b.mean[0]) <= 1e-9);
      energy[fast] = a.energy + b.energy;
    }
    CHECK(energy[0] <= energy[1] && energy[1] <= (1 + 10.0 / 1024) * energy[0]);
  }
}

// What a split says of its halves, and what those found along with it say of theirs. Returns how many there are.
template <class T>
std::size_t check_splits(const Matrix<T>& x, const double* weights, std::span<const k2::Row> rows, double energy,
                         const typename k2::SampledSplit<T>::Result& split) {
  CHECK(split.left > 0 && split.left < rows.size());
  const std::span<const k2::Row> parts[] = {rows.first(split.left), rows.subspan(split.left)};
  std::size_t count = 1;
  for (const std::size_t side : {0u, 1u}) {
    const k2::Half& told = side == 0 ? split.a : split.b;
    const auto half = k2::half_of(x.rows(), weights, parts[side].size(), [&](std::size_t i) { return parts[side][i]; });
    CHECK(std::abs(told.energy - half.energy) <= 1e-9 * energy && std::abs(told.weight - half.weight) <= 1e-9);
    for (std::size_t c = 0; c < x.d; ++c) CHECK(std::abs(told.mean[c] - half.mean[c]) <= 1e-9 * std::sqrt(energy));
    if (split.inside[side]) count += check_splits(x, weights, parts[side], energy, *split.inside[side]);
  }
  return count;
}
TEST(splits_found_along_with_one_are_what_they_say) {
  const auto x = data::blobs<float>(40000, 5, 30, 3);
  std::vector<double> weights(x.n);
  for (std::size_t i = 0; i < x.n; ++i) weights[i] = 0.5 + static_cast<double>(i % 4);
  for (const double* w : {static_cast<const double*>(nullptr), static_cast<const double*>(weights.data())}) {
    for (const std::size_t most : {1u, 2u, 9u, 100u}) {
      k2::Pool pool(2);
      std::vector<k2::Row> rows(x.n);
      std::iota(rows.begin(), rows.end(), k2::Row(0));
      const auto whole = k2::half_of(x.rows(), w, x.n, [](std::size_t i) { return i; });
      const auto split = k2::SampledSplit<float>(x.rows(), w, true)(rows, whole, 2, most, k2::Random(1), pool);
      CHECK(check_splits<float>(x, w, rows, whole.energy, split) == std::min<std::size_t>(most, 31));
      std::sort(rows.begin(), rows.end());
      for (std::size_t i = 0; i < x.n; ++i) CHECK(rows[i] == i);
    }
  }
}

TEST(a_division_is_cancelled_by_the_poll) {
  const auto x = data::blobs<float>(33000, 64, 5, 1);
  for (const int threads : {1, 2}) {
    k2::Pool quiet(threads);
    const auto survey = k2::survey_rows(x.rows(), nullptr, quiet);
    k2::Pool pool(threads, [] { return true; });
    bool cancelled = false;
    try {
      k2::GreedyDivision<float>(x.rows(), nullptr, 1, 1 << 30)(2, survey, pool);
    } catch (const k2::Cancelled&) {
      cancelled = true;
    }
    CHECK(cancelled);
  }
}

template <class T>
void check_plus_plus(const Matrix<T>& x, const double* weights, int trials) {
  k2::Chosen first;
  const std::size_t distinct = distinct_rows(x);
  for (const int threads : {1, 3}) {
    k2::Pool pool(threads);
    const auto chosen = k2::plus_plus(x.rows(), weights, x.n, trials, 5, pool);
    CHECK(chosen.rows.size() == x.n);
    CHECK(chosen.ops.distances == x.n * (1 + (x.n - 1) * static_cast<std::size_t>(trials)));
    std::set<std::vector<T>> rows;
    for (std::size_t c = 0; c < x.n; ++c) {
      const auto i = static_cast<std::size_t>(chosen.rows[c]);
      CHECK(i < x.n);
      rows.emplace(x[i], x[i] + x.d);
      if (c + 1 == distinct) CHECK(rows.size() == distinct);  // no row twice while others are left
    }
    if (threads == 1) {
      first = chosen;
    } else {
      CHECK(chosen.rows == first.rows);
    }
  }
}
TEST(k_means_plus_plus_takes_every_distinct_row_first) {
  for (const int trials : {1, 4}) {
    check_plus_plus(data::blobs<float>(60, 5, 4, 1), nullptr, trials);
    check_plus_plus(data::grid<double>(80, 2, 3, 1), nullptr, trials);
    check_plus_plus(Matrix<float>(20, 2), nullptr, trials);
    check_plus_plus(data::blobs<double>(1, 2, 1, 1), nullptr, trials);
    std::vector<double> weights(80);
    for (std::size_t i = 0; i < 80; ++i) weights[i] = i % 2 ? 1e-6 : 1e6;
    check_plus_plus(data::grid<float>(80, 2, 3, 1), weights.data(), trials);
  }
}

TEST(rows_are_sorted_by_value_as_std_sort_does) {
  k2::Random random(3, 4);
  k2::ValueSort sort;
  const double tiny = 1e-300, huge = 1e300;
  for (const std::size_t m : {0, 1, 2, 95, 96, 97, 1000, 5000}) {
    for (int kind = 0; kind < 6; ++kind) {
      std::vector<k2::ValueSort::Entry> entries(m);
      for (std::size_t i = 0; i < m; ++i) {
        const double u = random.uniform() - 0.5, few = static_cast<double>(random.below(3)) - 1.0;
        const double same_float = 1e6 + 1e-6 * u;
        const double values[] = {u, few * 0.0, few, same_float, few * huge + u, few * tiny};
        entries[i] = {values[kind], static_cast<k2::Row>(i)};
      }
      auto expected = entries;
      std::sort(expected.begin(), expected.end());
      sort(entries);
      CHECK(entries == expected);
    }
  }
}

}  // namespace
