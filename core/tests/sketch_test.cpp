// A sketch never says that two vectors are farther apart than they are, whatever the data; and it says enough.
#include "sketch.hpp"

#include "check.hpp"
#include "data.hpp"

namespace {

using data::Matrix;

template <class T>
void check_bound(const Matrix<T>& x, bool tells) {
  k2::Pool pool(2);
  const k2::Survey survey = k2::survey_rows(x.rows(), nullptr, pool);
  const k2::Sketch<T> sketch(x.rows(), survey, 5, pool);
  const std::size_t w = k2::Sketch<T>::kWidth;
  CHECK(sketch.caught() >= 0.0 && sketch.caught() <= 1.0);
  double share = 0.0, pairs = 0.0;
  for (std::size_t i = 0; i < x.n; i += 7) {
    for (std::size_t j = 0; j < x.n; ++j) {
      const double apart = std::sqrt(data::squared_distance(sketch.rows()[i], sketch.rows()[j], w));
      const double margin = static_cast<double>(sketch.margin()[i]) + static_cast<double>(sketch.margin()[j]);
      const double truth = std::sqrt(data::squared_distance(x[i], x[j], x.d));
      CHECK(apart - margin <= truth);
      if (truth > 0) share += std::max(0.0, apart - margin) / truth, pairs += 1;
    }
  }
  if (tells) CHECK(share > 0.9 * pairs);
}

// Rows in six directions of d, and a little noise in all.
template <class T>
Matrix<T> flat(std::size_t n, std::size_t d, double offset, double unit) {
  k2::Random random(3, 4);
  const Matrix<double> inner = data::blobs<double>(n, 6, 9, 1), out_of = data::blobs<double>(6, d, 3, 2);
  Matrix<T> out(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < d; ++c) {
      double v = offset + 0.01 * data::normal(random);
      for (std::size_t e = 0; e < 6; ++e) v += inner[i][e] * out_of[e][c];
      out[i][c] = static_cast<T>(v * unit);
    }
  }
  return out;
}

template <class T>
void check_all() {
  for (const std::size_t d : {1u, 5u, 31u, 32u, 33u, 300u, 1000u}) {
    check_bound(data::blobs<T>(150, d, 8, d), d <= 31);
    check_bound(data::grid<T>(120, d, 3, d), d <= 31);
    check_bound(flat<T>(150, d, 0.0, 1.0), true);
    check_bound(flat<T>(150, d, 30.0, 1.0), false);              // far from the origin: products lose digits
    check_bound(flat<T>(150, d, 0.0, 0x1p-60), sizeof(T) == 8);  // squares near the smallest float
  }
  Matrix<T> equal(50, 40);
  for (T& v : equal.value) v = T(3);
  check_bound(equal, false);
  Matrix<T> one(1, 40);
  check_bound(one, false);
}

TEST(sketches_never_say_too_much_in_float) { check_all<float>(); }
TEST(sketches_never_say_too_much_in_double) { check_all<double>(); }

TEST(sketches_do_not_depend_on_threads) {
  const Matrix<float> x = flat<float>(700, 90, 1.0, 1.0);
  k2::Pool one(1), five(5);
  const k2::Survey survey = k2::survey_rows(x.rows(), nullptr, one);
  const k2::Sketch<float> a(x.rows(), survey, 5, one), b(x.rows(), survey, 5, five);
  CHECK(std::equal(a.rows().data, a.rows().data + 700 * k2::Sketch<float>::kWidth, b.rows().data));
  CHECK(a.margin() == b.margin());
}

}  // namespace
