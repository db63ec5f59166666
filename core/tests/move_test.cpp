// The mean in fixed point and in double, and the refill of empty clusters.
#include "move.hpp"

#include <numeric>

#include "check.hpp"
#include "data.hpp"

namespace {

using data::Matrix;
using k2::Label;

template <class T>
std::vector<double> plain_means(const Matrix<T>& x, const std::vector<double>& w, const std::vector<Label>& labels,
                                const std::vector<T>& before, std::size_t k) {
  std::vector<double> out(before.begin(), before.end());
  for (std::size_t j = 0; j < k; ++j) {
    std::vector<long double> sum(x.d, 0);
    long double weight = 0;
    for (std::size_t i = 0; i < x.n; ++i) {
      if (labels[i] != static_cast<Label>(j)) continue;
      weight += w[i];
      for (std::size_t c = 0; c < x.d; ++c) sum[c] += w[i] * static_cast<long double>(x[i][c]);
    }
    for (std::size_t c = 0; c < x.d && weight > 0; ++c) out[j * x.d + c] = static_cast<double>(sum[c] / weight);
  }
  return out;
}

// Labels change at random, a few or all at a time; every mean must be that of the labels as they are now.
template <class T>
void check_moves(std::vector<double> weights, bool expect_fixed) {
  const std::size_t k = 9;
  const auto x = data::blobs<T>(500, 21, 5, 1);
  const bool weighted = !weights.empty();
  k2::Pool pool(3);
  const auto survey = k2::survey_rows(x.rows(), weighted ? weights.data() : nullptr, pool);
  k2::Mean<T> move(x.rows(), weighted ? weights.data() : nullptr, survey, k);
  CHECK(move.fixed() == expect_fixed);
  if (!weighted) weights.assign(x.n, 1.0);
  k2::Centers<T> centers(x.value.data(), k, x.d);
  std::vector<Label> labels(x.n), before;
  k2::Random random(5, 5);
  for (std::size_t i = 0; i < x.n; ++i) labels[i] = static_cast<Label>(i % k);
  for (int round = 0; round < 60; ++round) {
    for (std::size_t i = 0; i < x.n; ++i) {
      if (random.below(round % 4 == 0 ? 2 : 60) == 0) labels[i] = static_cast<Label>(random.below(k));
    }
    const auto old = centers.value;
    const auto moved = move(x.rows(), std::span<Label>(labels), centers, pool);
    CHECK(moved.refilled.empty());
    const auto want = plain_means(x, weights, labels, old, k);
    double shift = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
      double drift = 0.0;
      for (std::size_t c = j * x.d; c < (j + 1) * x.d; ++c) {
        // half a digit of T, and sums of 500 terms of up to 10 with 49 bits or more
        CHECK(std::abs(static_cast<double>(centers.value[c]) - want[c]) <= std::abs(want[c]) * k2::kUnit<T> + 1e-12);
        drift += std::pow(static_cast<double>(centers.value[c]) - static_cast<double>(old[c]), 2);
      }
      CHECK(centers.drift[j] >= std::sqrt(drift) * (1 - 1e-14) && centers.drift[j] <= std::sqrt(drift) * (1 + 1e-8));
      shift += drift;
    }
    CHECK(std::abs(moved.shift - shift) <= 1e-12 * shift);
    if (expect_fixed && !before.empty()) {
      std::uint64_t changed = 0;
      for (std::size_t i = 0; i < x.n; ++i) changed += labels[i] != before[i];
      CHECK(moved.ops.additions == 2 * changed);
    }
    before = labels;
  }
}

TEST(centers_are_means_in_fixed_point_after_any_sequence_of_moves) {
  check_moves<float>({}, true);
  check_moves<double>({}, true);
  std::vector<double> weights(500);
  for (std::size_t i = 0; i < 500; ++i) weights[i] = 0.25 + static_cast<double>(i % 7);
  check_moves<float>(weights, true);
  check_moves<double>(weights, true);
}

TEST(centers_are_means_in_double_where_weights_leave_fixed_point_no_room) {
  std::vector<double> weights(500);
  for (std::size_t i = 0; i < 500; ++i) weights[i] = std::pow(10.0, static_cast<double>(i % 25) - 12);
  check_moves<float>(weights, false);
  check_moves<double>(weights, false);
}

TEST(fixed_point_leaves_no_trace_of_the_way) {
  // after any detour the centers have the bits they have when reached at once
  const auto x = data::blobs<double>(400, 7, 5, 1);
  k2::Pool pool(2);
  const auto survey = k2::survey_rows(x.rows(), nullptr, pool);
  k2::Mean<double> detour(x.rows(), nullptr, survey, 6), direct(x.rows(), nullptr, survey, 6);
  k2::Centers<double> a(x.value.data(), 6, 7), b(x.value.data(), 6, 7);
  std::vector<Label> labels(x.n);
  k2::Random random(1, 1);
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = 0; i < x.n; ++i) labels[i] = static_cast<Label>(random.below(6));
    detour(x.rows(), std::span<Label>(labels), a, pool);
  }
  direct(x.rows(), std::span<Label>(labels), b, pool);
  CHECK(a.value == b.value);
  CHECK(detour.energy(a, pool) == direct.energy(b, pool));
}

TEST(an_outlier_takes_fixed_point_away_rather_than_digits) {
  // one value of 1e12 in a column of spread 1: a quantum of its reach would be all of the others
  auto x = data::blobs<double>(300, 2, 3, 1);
  x[7][0] = 1e18;
  for (std::size_t i = 0; i < x.n; ++i) x[i][1] = i == 9 ? 1e15 : x[i][1];
  k2::Pool pool(1);
  const auto survey = k2::survey_rows(x.rows(), nullptr, pool);
  k2::Mean<double> move(x.rows(), nullptr, survey, 2);
  k2::Centers<double> centers(x.value.data(), 2, 2);
  std::vector<Label> labels(x.n, 0);
  labels[7] = labels[9] = 1;
  move(x.rows(), std::span<Label>(labels), centers, pool);
  const auto want = plain_means(x, std::vector<double>(x.n, 1.0), labels, centers.value, 2);
  // sums are about the mean of the column; its last digit, of 1e18 / 300, is what an outlier costs
  CHECK(std::abs(centers[0][0] - want[0]) <= 1e18 / 300 * 0x1p-50 + 1e18 * 0x1p-49);
  CHECK(std::abs(centers[0][1] - want[1]) <= 1e15 / 300 * 0x1p-50 + 1e15 * 0x1p-49);
}

TEST(empty_clusters_get_the_rows_that_cost_most_but_never_a_last_row) {
  Matrix<double> x(6, 1);
  const double at[] = {0, 1, 2, 50, 100, 101};
  std::copy(at, at + 6, x.value.begin());
  const double centers_at[] = {0, 50, 90, 0, 0};  // 0: rows 0-2; 1: row 3; 2: rows 4-5; 3 and 4: none
  k2::Centers<double> centers(centers_at, 5, 1);
  std::vector<Label> labels{0, 0, 0, 1, 2, 2};
  const std::vector<std::int64_t> members{3, 1, 2, 0, 0};
  k2::Pool pool(2);
  const auto given =
      k2::refill_empty(x.rows(), centers, std::span<const std::int64_t>(members), std::span<Label>(labels), pool);
  // 101 costs 121, 100 costs 100 but is then the last of its cluster, so 2 (costs 4) goes
  CHECK((labels == std::vector<Label>{0, 0, 4, 1, 2, 3}));
  CHECK((given == std::vector<k2::Row>{5, 2}));
}

TEST(rows_are_taken_from_the_costliest_on_and_of_equals_the_first) {
  const auto x = data::grid<float>(40000, 2, 30, 5);  // more than one part of the rows, and many equal costs
  const float centers_at[] = {0, 0, 15, 15};
  k2::Centers<float> centers(centers_at, 2, 2);
  std::vector<Label> labels(x.n);
  for (std::size_t i = 0; i < x.n; ++i) labels[i] = static_cast<Label>(i % 2);
  auto cost = [&](k2::Row i) { return data::squared_distance(x[i], centers[static_cast<std::size_t>(labels[i])], 2); };
  std::vector<k2::Row> want(x.n);
  std::iota(want.begin(), want.end(), 0);
  std::stable_sort(want.begin(), want.end(), [&](auto a, auto b) { return cost(a) > cost(b); });
  k2::Pool pool(2);
  k2::Costliest<float> costliest(x.rows(), centers, labels, pool);
  std::vector<k2::Row> got;
  while (!costliest.empty()) got.push_back(costliest.take());
  CHECK(got == want);
}

TEST(rows_that_sit_on_their_center_are_not_taken) {
  Matrix<double> x(4, 1);
  for (std::size_t i = 0; i < 4; ++i) x[i][0] = i < 2 ? 1 : 2;
  const double centers_at[] = {1, 2, 9};
  k2::Centers<double> centers(centers_at, 3, 1);
  std::vector<Label> labels{0, 0, 1, 1};
  const std::vector<std::int64_t> members{2, 2, 0};
  k2::Pool pool(1);
  CHECK(k2::refill_empty(x.rows(), centers, std::span<const std::int64_t>(members), std::span<Label>(labels), pool)
            .empty());
  CHECK((labels == std::vector<Label>{0, 0, 1, 1}));
}

TEST(the_survey_finds_the_first_value_that_is_not_finite) {
  for (const int threads : {1, 3}) {
    k2::Pool pool(threads);
    auto x = data::blobs<float>(5000, 4, 3, 1);
    CHECK(k2::survey_rows(x.rows(), nullptr, pool).bad_row == -1);
    x[4000][1] = std::numeric_limits<float>::infinity();
    x[3210][3] = std::numeric_limits<float>::quiet_NaN();
    x[3210][2] = -std::numeric_limits<float>::infinity();
    const auto survey = k2::survey_rows(x.rows(), nullptr, pool);
    CHECK(survey.bad_row == 3210 && survey.bad_column == 2);
  }
}

TEST(the_survey_keeps_its_digits_beside_an_offset) {
  Matrix<double> x(2000, 1);
  for (std::size_t i = 0; i < x.n; ++i) x[i][0] = 0x1p30 + static_cast<double>(i % 2);
  k2::Pool pool(2);
  const auto survey = k2::survey_rows(x.rows(), nullptr, pool);
  CHECK(survey.mean[0] == 0x1p30 + 0.5);
  CHECK(survey.total == 500.0 && survey.deviation[0] == 0.5 && survey.weight == 2000.0);
  CHECK(survey.low[0] == 0x1p30 && survey.high[0] == 0x1p30 + 1);
}

}  // namespace
