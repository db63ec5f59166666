// All exact methods take the same steps, both bounds of k² do, and so does any number of threads: while lists churn.
// With K2_CHECK the bounds themselves are checked on the way.
#include "engines.hpp"

#include "check.hpp"
#include "data.hpp"

namespace {

using data::Matrix;
using k2::Bounds;
using k2::Label;

template <class T>
struct Start {
  const Matrix<T>& x;
  Matrix<T> centers;
  std::vector<Label> labels;    // or none
  std::vector<double> weights;  // or none
  k2::Problem<T> problem() const {
    return {x.rows(), weights.empty() ? nullptr : weights.data(), centers.rows(),
            labels.empty() ? nullptr : labels.data()};
  }
};

template <class T>
using Engines = std::vector<std::unique_ptr<k2::AnyEngine<T>>>;

template <class T>
k2::Survey look(const k2::Problem<T>& p) {
  k2::Pool pool(1);
  return k2::survey_rows(p.x, p.weights, pool);
}

template <class T>
bool same_state(const k2::AnyEngine<T>& a, const k2::AnyEngine<T>& b) {
  return std::equal(a.labels().begin(), a.labels().end(), b.labels().begin()) &&
         a.centers().value == b.centers().value && a.centers().drift == b.centers().drift;
}

template <class T>
void step_together(Engines<T>& engines, int steps, bool settle, int additions_differ = 0) {
  for (int t = 0; t < steps; ++t) {
    const k2::Step first = engines[0]->step();
    for (std::size_t e = 1; e < engines.size(); ++e) {
      const k2::Step step = engines[e]->step();
      CHECK(step.moved == first.moved && step.shift == first.shift);
      CHECK(t < additions_differ || step.ops.additions == first.ops.additions);
      CHECK(engines[e]->energy() == engines[0]->energy());  // MiniBatch labels its rows only now
      CHECK(same_state(*engines[e], *engines[0]));
    }
    if (settle && t % 3 == 2) {
      for (auto& engine : engines) engine->settle(false);
      for (std::size_t e = 1; e < engines.size(); ++e) CHECK(same_state(*engines[e], *engines[0]));
    }
  }
}

template <class T>
std::vector<Start<T>> starts(const Matrix<T>& x, std::size_t k) {
  Matrix<T> rows(k, x.d), far(k, x.d);
  std::copy_n(x.value.begin(), k * x.d, rows.value.begin());
  for (std::size_t i = 0; i < far.value.size(); ++i) far.value[i] = rows.value[i] * T(30) + T(5);
  std::vector<Label> random(x.n);
  std::vector<double> weights(x.n);
  k2::Random draw(1, 2);
  for (std::size_t i = 0; i < x.n; ++i)
    random[i] = static_cast<Label>(draw.below(k)), weights[i] = 0.1 + draw.uniform();
  Matrix<T> twins(k, x.d);
  for (std::size_t j = 0; j < k; ++j) std::copy_n(x[j / 3], x.d, twins[j]);
  return {{x, rows, {}, {}}, {x, rows, random, weights}, {x, far, random, {}}, {x, twins, {}, weights}};
}

template <class T>
void check_exact(const Matrix<T>& x, std::size_t k, int steps) {
  for (const Start<T>& start : starts(x, k)) {
    const auto p = start.problem();
    const auto survey = look(p);
    Engines<T> engines;
    engines.push_back(k2::make_lloyd(p, survey, 2, {}));
    engines.push_back(k2::make_elkan(p, survey, 3, {}));
    engines.push_back(k2::make_k2(p, survey, k, Bounds::elkan, 2, {}));
    engines.push_back(k2::make_k2(p, survey, 2 * k, Bounds::hamerly, 1, {}));
    engines.push_back(k2::make_akm(p, survey, {k, 3, false, 1}, 2, {}));
    step_together(engines, steps, true);
    k2::Pool pool(2);
    const k2::Sketch<T> sketch(p.x, survey, 1, pool);
    Engines<T> sketched;  // they add up the labels there are before the first assignment
    sketched.push_back(k2::make_lloyd(p, survey, 1, {}));
    sketched.push_back(k2::make_sketched<T>(p, survey, &sketch, {k, 1, false}, 2, {}));
    sketched.push_back(k2::make_sketched<T>(p, survey, nullptr, {k, 1, false}, 3, {}));
    step_together(sketched, steps, true, start.labels.empty() ? 0 : 1);
  }
}
TEST(lloyd_elkan_akm_k2_and_sketched_over_all_centers_take_the_same_steps) {
  check_exact(data::blobs<float>(600, 5, 12, 1), 25, 9);
  check_exact(data::blobs<double>(300, 21, 8, 2), 15, 8);
  check_exact(data::grid<float>(400, 3, 4, 3), 25, 8);
  check_exact(data::grid<double>(400, 2, 5, 4), 20, 8);
}

template <class T>
void check_lists(const Matrix<T>& x, std::size_t k, std::size_t width, int steps) {
  for (const Start<T>& start : starts(x, k)) {
    const auto p = start.problem();
    const auto survey = look(p);
    Engines<T> engines;
    for (int threads = 1; threads <= 4; ++threads) {
      for (const Bounds bounds : {Bounds::elkan, Bounds::hamerly}) {
        engines.push_back(k2::make_k2(p, survey, width, bounds, threads, {}));
      }
    }
    step_together(engines, steps, false);
  }
}
TEST(both_bounds_and_all_threads_take_the_same_steps_while_lists_churn) {
  check_lists(data::blobs<float>(600, 3, 12, 1), 50, 2, 8);
  check_lists(data::blobs<float>(600, 3, 12, 2), 50, 5, 8);
  check_lists(data::blobs<double>(500, 4, 9, 3), 40, 3, 8);
  check_lists(data::blobs<double>(500, 4, 9, 3), 40, 16, 6);
  check_lists(data::grid<float>(400, 3, 4, 5), 30, 4, 6);
  check_lists(data::blobs<double>(300, 2, 5, 6), 20, 1, 6);
}

template <class T>
void check_random(const Matrix<T>& x, std::size_t k, int steps) {
  for (const Start<T>& start : starts(x, k)) {
    const auto p = start.problem();
    const auto survey = look(p);
    Engines<T> akm, minibatch;
    for (int threads = 1; threads <= 4; ++threads) {
      akm.push_back(k2::make_akm(p, survey, {5, 8, false, 1}, threads, {}));
      minibatch.push_back(k2::make_minibatch(p, {150, 3, 1}, threads, {}));
    }
    step_together(akm, steps, true);
    step_together(minibatch, steps, false);
  }
}
template <class T>
void check_sketched(const Matrix<T>& x, std::size_t k, std::size_t width, int steps) {
  for (const Start<T>& start : starts(x, k)) {
    const auto p = start.problem();
    const auto survey = look(p);
    k2::Pool pool(2);
    const k2::Sketch<T> sketch(p.x, survey, 1, pool);
    Engines<T> plain, by_sketches, by_rows;  // swaps are found on what stands for the rows
    for (int threads = 1; threads <= 4; ++threads) {
      const bool odd = threads % 2;
      plain.push_back(k2::make_sketched<T>(p, survey, odd ? &sketch : nullptr, {width, 3, true, false}, threads, {}));
      by_sketches.push_back(k2::make_sketched<T>(p, survey, &sketch, {width, 3, true, true}, threads, {}));
      by_rows.push_back(k2::make_sketched<T>(p, survey, nullptr, {width, 3, true, true}, threads, {}));
    }
    for (auto* engines : {&plain, &by_sketches, &by_rows}) step_together(*engines, steps, true);
  }
}
TEST(sketched_takes_the_same_turns_for_all_threads_with_and_without_sketches) {
  check_sketched(data::blobs<float>(600, 50, 12, 1), 40, 8, 8);
  check_sketched(data::blobs<double>(500, 4, 9, 2), 40, 40, 8);
  check_sketched(data::grid<float>(400, 3, 4, 3), 30, 6, 8);
}
TEST(methods_that_draw_at_random_draw_the_same_for_all_threads) {
  check_random(data::blobs<float>(600, 5, 12, 1), 40, 6);
  check_random(data::grid<double>(400, 3, 4, 3), 30, 6);
}

// A plain k²-means, with nothing skipped.
template <class T>
std::vector<Label> plain_assignment(const Matrix<T>& x, const std::vector<T>& value, std::size_t k, std::size_t width,
                                    std::span<const Label> labels) {
  const auto& kernel = k2::kernels<T>();
  std::vector<Label> out(labels.begin(), labels.end());
  std::vector<std::vector<Label>> lists(k);
  for (std::size_t l = 0; l < k; ++l) {
    std::vector<std::pair<double, Label>> all;
    for (std::size_t j = 0; j < k; ++j) {
      all.emplace_back(j == l ? -1.0 : kernel.squared_distance(&value[l * x.d], &value[j * x.d], x.d), Label(j));
    }
    std::sort(all.begin(), all.end());
    for (std::size_t s = 0; s < width; ++s) lists[l].push_back(all[s].second);
  }
  for (std::size_t i = 0; i < x.n; ++i) {
    const Label own = labels[i];
    double best = kernel.squared_distance(x[i], &value[static_cast<std::size_t>(own) * x.d], x.d);
    for (const Label j : lists[static_cast<std::size_t>(own)]) {
      const double s = kernel.squared_distance(x[i], &value[static_cast<std::size_t>(j) * x.d], x.d);
      if (s < best || (s == best && out[i] != own && j < out[i])) best = s, out[i] = j;
    }
  }
  return out;
}

template <class T>
void check_plain(const Matrix<T>& x, std::size_t k, std::size_t width) {
  for (const Start<T>& start : starts(x, k)) {
    const auto p = start.problem();
    const auto survey = look(p);
    for (const Bounds bounds : {Bounds::elkan, Bounds::hamerly}) {
      const auto engine = k2::make_k2(p, survey, width, bounds, 2, {});
      engine->step();  // gives labels, if there were none
      for (int t = 0; t < 8; ++t) {
        const std::vector<Label> before(engine->labels().begin(), engine->labels().end());
        const auto want = plain_assignment(x, engine->centers().value, k, width, before);
        engine->settle(false);
        CHECK(std::equal(want.begin(), want.end(), engine->labels().begin()));
        engine->step();
      }
    }
  }
}
TEST(an_assignment_is_the_nearest_of_the_list_of_the_rows_center) {
  check_plain(data::blobs<float>(400, 3, 7, 1), 30, 4);
  check_plain(data::blobs<double>(300, 18, 7, 2), 20, 6);
  check_plain(data::grid<float>(300, 3, 4, 3), 25, 5);
}

template <class T>
void check_energy() {
  const auto x = data::blobs<T>(600, 6, 9, 3);
  for (const Start<T>& start : starts(x, 25)) {
    const auto p = start.problem();
    const auto survey = look(p);
    const auto engine = k2::make_k2(p, survey, 5, Bounds::elkan, 2, {});
    k2::Pool pool(1);
    double before = std::numeric_limits<double>::infinity();
    for (int t = 0; t < 20; ++t) {
      engine->step();
      const auto& c = engine->centers();
      const double truth =
          k2::energy_of(p.x, p.weights, k2::Rows<const T>{c.value.data(), c.k, c.d}, engine->labels().data(), pool);
      const double rounding = 600 * 0x1p-49 * survey.total;  // one for each row, of terms as large as the total
      CHECK(std::abs(engine->energy() - truth) <= rounding);
      CHECK(truth <= before + rounding + 1e-9 * truth * (sizeof(T) == 4));  // centers are rounded to T
      before = truth;
    }
  }
}
TEST(the_energy_of_the_running_sums_is_true_and_never_rises) {
  check_energy<float>();
  check_energy<double>();
}

TEST(a_step_is_cancelled_by_the_poll) {
  const auto x = data::blobs<float>(3000, 60, 9, 3);
  Matrix<float> centers(2500, 60);
  std::copy_n(x.value.begin(), centers.value.size(), centers.value.begin());
  const Start<float> start{x, centers, {}, {}};
  const auto p = start.problem();
  const auto survey = look(p);
  for (const int threads : {1, 2}) {
    const auto engine = k2::make_lloyd<float>(p, survey, threads, [] { return true; });
    bool cancelled = false;
    try {
      for (int t = 0; t < 1000000; ++t) engine->step();  // sooner or later the pool asks
    } catch (const k2::Cancelled&) {
      cancelled = true;
    }
    CHECK(cancelled);
  }
}

}  // namespace
