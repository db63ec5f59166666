// Every variant of the kernels this CPU runs, against plain loops: within the stated error, exact where it says so.
#include <cstring>
#include <string>

#include "check.hpp"
#include "data.hpp"
#include "dispatch.hpp"

namespace {

using k2::Kernels;

template <class T>
struct Variant {
  std::string name;
  Kernels<T> table{};
};

template <class T>
std::vector<Variant<T>> variants() {
  std::vector<Variant<T>> out;
  for (const k2::Variant& v : k2::variants()) {
    if (!v.runs) continue;
    Kernels<float> f{};
    Kernels<double> d{};
    v.exact(f, d);
    v.tiles(f, d);
    if constexpr (sizeof(T) == 4) {
      out.push_back({v.name, f});
    } else {
      out.push_back({v.name, d});
    }
  }
  return out;
}

std::vector<std::size_t> dimensions() {
  std::vector<std::size_t> out;
  for (std::size_t d = 1; d <= 70; ++d) out.push_back(d);
  for (std::size_t d = 255; d <= 260; ++d) out.push_back(d);
  out.push_back(784);
  return out;
}

template <class T>
std::vector<T> draw(std::size_t d, std::uint64_t seed) {
  k2::Random random(seed, d);
  std::vector<T> out(d);
  for (T& v : out) v = T(data::normal(random));
  return out;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

template <class T>
void check_exact_distance() {
  const auto all = variants<T>();
  for (const std::size_t d : dimensions()) {
    const auto x = draw<T>(d, 1), c = draw<T>(d, 2);
    const double truth = data::squared_distance(x.data(), c.data(), d);
    const double first = all[0].table.squared_distance(x.data(), c.data(), d);
    CHECK(std::abs(first - truth) <= truth * static_cast<double>(d + 4) * 0x1p-53);
    for (const auto& v : all) CHECK(same_bits(v.table.squared_distance(x.data(), c.data(), d), first));
    // the distance is a metric where it must be: nothing from itself, the same both ways
    CHECK(first == all[0].table.squared_distance(c.data(), x.data(), d));
    CHECK(all[0].table.squared_distance(x.data(), x.data(), d) == 0.0);
  }
}
TEST(exact_distances_have_the_same_bits_in_every_variant) {
  check_exact_distance<float>();
  check_exact_distance<double>();
}

template <class T>
void check_projection() {
  const auto all = variants<T>();
  for (const std::size_t d : dimensions()) {
    const auto x = draw<T>(d, 1);
    const auto v = draw<double>(d, 3);
    long double truth = 0, size = 0;
    for (std::size_t i = 0; i < d; ++i) {
      truth += static_cast<long double>(x[i]) * v[i];
      size += std::abs(static_cast<long double>(x[i]) * v[i]);
    }
    const double first = all[0].table.project(x.data(), v.data(), d);
    CHECK(std::abs(first - static_cast<double>(truth)) <=
          static_cast<double>(size) * static_cast<double>(d + 2) * 0x1p-53);
    for (const auto& w : all) CHECK(same_bits(w.table.project(x.data(), v.data(), d), first));
  }
}
TEST(projections_have_the_same_bits_in_every_variant) {
  check_projection<float>();
  check_projection<double>();
}

template <class T>
void check_near() {
  for (const auto& v : variants<T>()) {
    for (const std::size_t d : dimensions()) {
      const auto x = draw<T>(d, 1), c = draw<T>(d, 2);
      const double error = k2::difference_error<T>(d), truth = data::squared_distance(x.data(), c.data(), d);
      CHECK(std::abs(static_cast<double>(v.table.near(x.data(), c.data(), d)) - truth) <= error * truth);
      const std::vector<T> zero(d);
      const double square = data::squared_distance(x.data(), zero.data(), d);
      CHECK(std::abs(static_cast<double>(v.table.square(x.data(), d)) - square) <= error * square);
    }
  }
}
TEST(fast_distances_are_within_their_stated_error) {
  check_near<float>();
  check_near<double>();
}

// One large element first, then squares of just under half a unit of it: every addition to its sum rounds them away.
template <class T>
void check_worst_case() {
  for (const auto& v : variants<T>()) {
    for (const std::size_t d : {64u, 500u, 4097u}) {
      std::vector<T> x(d, T(std::sqrt(k2::kUnit<T> * 0.99))), zero(d);
      x[0] = 1;
      const double error = k2::difference_error<T>(d), truth = data::squared_distance(x.data(), zero.data(), d);
      CHECK(std::abs(static_cast<double>(v.table.near(x.data(), zero.data(), d)) - truth) <= error * truth);
      CHECK(std::abs(static_cast<double>(v.table.square(x.data(), d)) - truth) <= error * truth);
    }
  }
}
TEST(fast_distances_are_within_their_stated_error_when_all_roundings_go_one_way) {
  check_worst_case<float>();
  check_worst_case<double>();
}

template <class T>
void check_dots() {
  for (const auto& v : variants<T>()) {
    for (const std::size_t d : dimensions()) {
      const std::size_t width = v.table.panel, count = 2, m = d % 29 + 1;  // all remainders of the tile's height
      const auto rows = data::blobs<T>(m, d, 3, d), centers = data::blobs<T>(count * width, d, 3, d + 1);
      std::vector<T> packed(count * width * d), out(m * (count * width + 3), T(77));
      std::vector<const T*> x(m), c(count * width);
      for (std::size_t i = 0; i < m; ++i) x[i] = rows[i];
      for (std::size_t j = 0; j < c.size(); ++j) c[j] = centers[j];
      for (std::size_t p = 0; p < count; ++p)
        v.table.pack(c.data() + p * width, nullptr, d, packed.data() + p * width * d);
      for (std::size_t j = 0; j < c.size(); ++j) {
        for (std::size_t i = 0; i < d; ++i) CHECK(packed[(j / width * d + i) * width + j % width] == c[j][i]);
      }
      const std::size_t stride = count * width + 3;
      v.table.dots(x.data(), m, packed.data(), count, d, out.data(), stride);
      for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t j = 0; j < c.size(); ++j) {
          long double truth = 0, xx = 0, cc = 0;
          for (std::size_t i = 0; i < d; ++i) {
            truth += static_cast<long double>(x[r][i]) * c[j][i];
            xx += static_cast<long double>(x[r][i]) * x[r][i], cc += static_cast<long double>(c[j][i]) * c[j][i];
          }
          const double error = k2::product_error<T>(d) * std::sqrt(static_cast<double>(xx * cc));
          CHECK(std::abs(static_cast<double>(out[r * stride + j]) - static_cast<double>(truth)) <= error);
        }
        for (std::size_t j = c.size(); j < stride; ++j) CHECK(out[r * stride + j] == T(77));  // not its own
      }
    }
  }
}
TEST(tiles_are_within_their_stated_error_for_every_tail) {
  check_dots<float>();
  check_dots<double>();
}

template <class T>
void check_shift() {
  for (const auto& v : variants<T>()) {
    for (const std::size_t d : {1u, 15u, 33u, 260u}) {
      const std::size_t width = v.table.panel;
      const auto centers = data::blobs<T>(width, d, 3, 5);
      const auto shift = draw<T>(d, 6);
      std::vector<const T*> c(width);
      for (std::size_t j = 0; j < width; ++j) c[j] = centers[j];
      std::vector<T> packed(width * d);
      v.table.pack(c.data(), shift.data(), d, packed.data());
      for (std::size_t j = 0; j < width; ++j) {
        for (std::size_t i = 0; i < d; ++i) CHECK(packed[i * width + j] == c[j][i] - shift[i]);
      }
    }
  }
}
TEST(packing_takes_the_shift_off) {
  check_shift<float>();
  check_shift<double>();
}

template <class T>
void check_lowest() {
  for (const auto& v : variants<T>()) {
    k2::Random random(3, 4);
    for (int round = 0; round < 300; ++round) {
      const std::size_t count = v.table.panel * (1 + random.below(4));
      std::vector<T> dots(count), base(count), slack(count), score(count);
      const T norm = T(random.below(4));
      for (std::size_t j = 0; j < count; ++j) {  // small integers: exact, with many ties
        dots[j] = T(random.below(5)), base[j] = T(random.below(9)), slack[j] = T(random.below(3));
        score[j] = base[j] - 2 * dots[j] - norm * slack[j];
      }
      k2::Lowest<T> best{T(-3), T(100), 7};
      if (round % 2) best = {T(1000), T(1000), -1};
      std::vector<T> merged(score);
      merged.push_back(best.first), merged.push_back(best.second);
      std::sort(merged.begin(), merged.end());
      const k2::Lowest<T> before = best;
      v.table.lowest(dots.data(), base.data(), slack.data(), norm, count, 100, &best);
      CHECK(best.first == merged[0] && best.second == merged[1]);
      if (best.index == before.index) {
        CHECK(best.first == before.first);
      } else {
        CHECK(best.index >= 100 && score[static_cast<std::size_t>(best.index) - 100] == merged[0]);
      }
    }
  }
}
TEST(the_two_lowest_scores_are_found_and_merged) {
  check_lowest<float>();
  check_lowest<double>();
}

template <class T>
void check_sums() {
  const auto all = variants<T>();
  for (const std::size_t d : dimensions()) {
    const auto x = draw<T>(d, 1);
    const auto mean = draw<double>(d, 2);
    std::vector<double> scale(d);
    for (std::size_t i = 0; i < d; ++i) scale[i] = std::ldexp(1.0, 20 + static_cast<int>(i % 13));
    std::vector<std::int64_t> want(d), start(d);
    for (std::size_t i = 0; i < d; ++i) {
      start[i] = static_cast<std::int64_t>(i * i) - 50;
      want[i] = static_cast<std::int64_t>(std::nearbyint((static_cast<double>(x[i]) - mean[i]) * (1.5 * scale[i])));
    }
    for (const auto& v : all) {
      auto to = start, from = start, alone = start;
      v.table.transfer(x.data(), mean.data(), scale.data(), 1.5, to.data(), from.data(), d);
      v.table.transfer(x.data(), mean.data(), scale.data(), 1.5, alone.data(), nullptr, d);
      for (std::size_t i = 0; i < d; ++i) {
        CHECK(to[i] == start[i] + want[i] && alone[i] == to[i] && from[i] == start[i] - want[i]);
      }
      std::vector<double> sum(d, 0.25);
      v.table.accumulate(x.data(), mean.data(), 1.5, sum.data(), d);
      for (std::size_t i = 0; i < d; ++i) CHECK(same_bits(sum[i], 0.25 + 1.5 * (static_cast<double>(x[i]) - mean[i])));
    }
  }
}
TEST(sums_are_exact_integers_or_doubles_in_order) {
  check_sums<float>();
  check_sums<double>();
}

template <class T>
void check_scan() {
  const auto all = variants<T>();
  for (const std::size_t d : {1u, 5u, 16u, 31u, 64u, 70u, 130u}) {
    constexpr std::size_t kStrip = 64;
    const std::size_t n = 40, count = 33, stride = count + 5, strips = (d + kStrip - 1) / kStrip;
    const auto x = data::blobs<T>(n, d, 3, d);
    const auto mean = draw<double>(d, 2);
    std::vector<std::uint32_t> rows(count);
    std::vector<double> weights(count);
    for (std::size_t i = 0; i < count; ++i)
      rows[i] = static_cast<std::uint32_t>(i * 7 % n), weights[i] = 0.5 + double(i % 3);
    for (const bool weighted : {false, true}) {
      std::vector<double> first_square, first_spread, first_sum;
      for (const auto& v : all) {
        std::vector<double> sum(d, 0.0), square(strips * stride, 0.0), spread(strips * stride, 0.0);
        v.table.scan({x.value.data(), d, rows.data(), weighted ? weights.data() : nullptr, count, 0, d, kStrip, stride},
                     mean.data(), sum.data(), square.data(), spread.data());
        std::vector<double> running(d, 0.0);
        for (std::size_t i = 0; i < count; ++i) {
          double size = 0.0, apart = 0.0, got_size = 0.0, got_apart = 0.0;
          for (std::size_t c = 0; c < d; ++c) {
            const double z = static_cast<double>(x[rows[i]][c]) - mean[c], w = weighted ? weights[i] : 1.0;
            running[c] += w * z;
            size += running[c] * running[c], apart += w * z * z;
          }
          for (std::size_t s = 0; s < strips; ++s)
            got_size += square[s * stride + i], got_apart += spread[s * stride + i];
          CHECK(std::abs(got_size - size) <= size * 1e-13);  // d + count roundings of 1e-16
          CHECK(std::abs(got_apart - apart) <= apart * 1e-13);
        }
        if (first_sum.empty()) first_sum = sum, first_square = square, first_spread = spread;
        CHECK(sum == first_sum && square == first_square && spread == first_spread);
      }
    }
  }
}
TEST(the_scan_of_a_split_is_the_running_sum_with_the_same_bits_in_every_variant) {
  check_scan<float>();
  check_scan<double>();
}

template <class T>
void check_least() {
  for (const std::size_t count : {32u, 64u, 128u}) {  // whole panels of every variant
    const auto dots = draw<T>(count, 1), base = draw<T>(count, 2);
    auto factor = draw<T>(count, 3);
    for (T& f : factor) f = std::abs(f);
    T want = std::numeric_limits<T>::infinity();
    for (std::size_t j = 0; j < count; ++j) want = std::min(want, (T(3) + (base[j] - 2 * dots[j])) * factor[j]);
    for (const auto& v : variants<T>()) {
      CHECK(same_bits(v.table.least(dots.data(), base.data(), factor.data(), T(3), count), want));
    }
  }
}
TEST(the_least_has_the_same_bits_in_every_variant) {
  check_least<float>();
  check_least<double>();
}

template <class T>
void check_add_up() {
  for (const std::size_t d : {1u, 5u, 16u, 31u, 70u}) {
    const std::size_t n = 60, count = 45, parts = 3, size = d + 5;
    const auto x = data::blobs<T>(n, d, 3, d);
    const auto mean = draw<double>(d, 2);
    std::vector<std::uint32_t> rows(count);
    std::vector<std::int32_t> part(count);
    std::vector<double> weights(n);
    for (std::size_t i = 0; i < n; ++i) weights[i] = 0.5 + double(i % 3);
    for (std::size_t i = 0; i < count; ++i) rows[i] = std::uint32_t(i * 7 % n), part[i] = std::int32_t(i * i % parts);
    for (const bool weighted : {false, true}) {
      std::vector<double> want(parts * size, 0.0), first;
      for (std::size_t i = 0; i < count; ++i) {
        double* to = want.data() + static_cast<std::size_t>(part[i]) * size;
        const double w = weighted ? weights[rows[i]] : 1.0;
        for (std::size_t c = 0; c < d; ++c) {
          const double z = static_cast<double>(x[rows[i]][c]) - mean[c];
          to[c] += w * z, to[d] += w * z * z;
        }
        to[d + 4] += w;
      }
      for (const auto& v : variants<T>()) {
        std::vector<double> got(parts * size, 0.0);
        v.table.add_up({x.value.data(), d, rows.data(), weighted ? weights.data() : nullptr, count, part.data()},
                       mean.data(), got.data());
        if (first.empty()) first = got;
        CHECK(got == first);
        for (std::size_t p = 0; p < parts; ++p) {
          const double *g = got.data() + p * size, *t = want.data() + p * size;
          for (std::size_t c = 0; c < d; ++c) CHECK(same_bits(g[c], t[c]));
          CHECK(std::abs(g[d] + g[d + 1] + g[d + 2] + g[d + 3] - t[d]) <= t[d] * 1e-13 && g[d + 4] == t[d + 4]);
        }
      }
    }
  }
}
TEST(parts_are_added_up_with_the_same_bits_in_every_variant) {
  check_add_up<float>();
  check_add_up<double>();
}

template <class T>
void check_few() {
  for (const auto& v : variants<T>()) {
    const std::size_t panel = v.table.panel;
    for (const std::size_t panels : {1, 2, 5, 16}) {
      const std::size_t count = panels * panel;
      for (const int side : {1, 3, 1000000}) {  // many equals, or none
        k2::Random random(7, count);
        std::vector<T> values(count);
        for (T& value : values) value = T(random.below(static_cast<std::uint64_t>(side)));
        values[0] = std::numeric_limits<T>::infinity();
        for (std::size_t m = 1; m <= std::min<std::size_t>(count, 70); ++m) {
          std::vector<std::int32_t> order(count), out(count);
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
          v.table.few(values.data(), count, m, out.data());
          std::sort(order.begin(), order.begin() + m), std::sort(out.begin(), out.begin() + m);
          CHECK(std::equal(out.begin(), out.begin() + m, order.begin()));
        }
      }
    }
  }
}
TEST(the_lowest_few_are_found_in_every_variant) {
  check_few<float>();
  check_few<double>();
}

template <class T>
void check_nears() {
  for (const auto& v : variants<T>()) {
    for (const std::size_t d : dimensions()) {
      const auto x = draw<T>(d, 1), centers = draw<T>(5 * d, 2);
      const std::int32_t ids[] = {4, 0, 2, 2};
      T squares[4];
      v.table.nears(x.data(), centers.data(), ids, 4, d, squares);
      for (std::size_t j = 0; j < 4; ++j) {
        const double truth = data::squared_distance(x.data(), centers.data() + static_cast<std::size_t>(ids[j]) * d, d);
        CHECK(std::abs(squares[j] - truth) <= truth * k2::difference_error<T>(d));
      }
    }
  }
}
TEST(many_fast_distances_are_within_the_error_of_one) {
  check_nears<float>();
  check_nears<double>();
}

}  // namespace
