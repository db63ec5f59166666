// A capped assignment keeps to the cap, and its own prices prove that it is near the least cost.
#include "assign_capped.hpp"
#include "check.hpp"
#include "data.hpp"

namespace {

using data::Label;
using data::Matrix;

// Whatever the prices, no assignment costs less than this (weak duality).
template <class T>
double least_cost(const Matrix<T>& x, const double* weights, const Matrix<T>& centers, std::size_t cap,
                  std::span<const double> prices) {
  double sum = 0.0;
  for (const double p : prices) sum -= static_cast<double>(cap) * p;
  for (std::size_t i = 0; i < x.n; ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < centers.n; ++j) {
      least = std::min(least, (weights ? weights[i] : 1.0) * data::squared_distance(x[i], centers[j], x.d) + prices[j]);
    }
    sum += least;
  }
  return sum;
}

// `missed`: the share of the cost that may be lost beyond a step a row, where rows do not look at all centers.
template <class T>
void check_capped(const Matrix<T>& x, const double* weights, std::size_t k, std::size_t cap, double missed) {
  Matrix<T> centers(k, x.d);
  std::copy(x.value.begin(), x.value.begin() + static_cast<std::ptrdiff_t>(k * x.d), centers.value.begin());
  std::vector<Label> labels(x.n);
  for (std::size_t i = 0; i < x.n; ++i) labels[i] = data::nearest(x[i], centers, k2::kUnassigned);
  std::vector<Label> again = labels;
  k2::Pool pool(3), alone(1);
  k2::AssignCapped<T> assign(x.rows(), weights, centers.rows(), cap, 1e-3, pool);
  assign(labels, pool);
  k2::AssignCapped<T>(x.rows(), weights, centers.rows(), cap, 1e-3, alone)(again, alone);
  CHECK(labels == again);

  std::vector<std::size_t> size(k, 0);
  double cost = 0.0;
  for (std::size_t i = 0; i < x.n; ++i) {
    const auto j = static_cast<std::size_t>(labels[i]);
    ++size[j];
    cost += (weights ? weights[i] : 1.0) * data::squared_distance(x[i], centers[j], x.d);
  }
  CHECK(*std::max_element(size.begin(), size.end()) <= cap);
  CHECK(*std::min_element(size.begin(), size.end()) >= 1);
  const double least = least_cost(x, weights, centers, cap, assign.prices());
  CHECK(cost <= least * (1 + missed) + 1.001 * assign.step() * static_cast<double>(x.n) + 1e-9);
}

template <class T>
void check_all() {
  const Matrix<T> few = data::blobs<T>(600, 4, 7, 1);
  std::vector<double> weights(few.n);
  k2::Random random(1, 2);
  for (double& w : weights) w = 0.1 + random.uniform();
  for (const std::size_t k : {2u, 15u, 16u, 17u, 100u}) {
    for (const std::size_t more : {0u, 1u, 40u}) {
      check_capped(few, nullptr, k, (few.n + k - 1) / k + more, 0.0);
      check_capped(few, weights.data(), k, (few.n + k - 1) / k + more, 0.0);
    }
  }
  check_capped(data::grid<T>(300, 2, 3, 1), nullptr, 20, 15, 0.0);
}

TEST(a_capped_assignment_is_near_the_least_cost) {
  check_all<float>();
  check_all<double>();
}

TEST(of_many_centers_those_near_are_enough) {
  check_capped(data::blobs<float>(6000, 3, 60, 2), nullptr, 4200, 3, 0.01);
}

}  // namespace
