// The nearest of packed centers and the neighbors of centers, against looking at all of them.
#include <limits>
#include <set>

#include "center_graph.hpp"
#include "check.hpp"
#include "data.hpp"
#include "measure.hpp"
#include "neighbors.hpp"
#include "refresh.hpp"

namespace {

using data::Matrix;
using k2::Label;

template <class T>
void check_nearest(const Matrix<T>& x, const Matrix<T>& centers, const T* shift) {
  k2::Pool pool(2);
  k2::Panels<T> panels;
  panels.pack(centers.rows(), shift, pool);
  for (const int start : {-1, 0, 1}) {
    std::vector<Label> labels(x.n), before(x.n);
    for (std::size_t i = 0; i < x.n; ++i) {
      before[i] =
          start < 0 ? k2::kUnassigned : static_cast<Label>((i * 7 + static_cast<std::size_t>(start)) % centers.n);
    }
    labels = before;
    const auto moved = k2::label_nearest(x.rows(), panels, std::span<Label>(labels), pool);
    std::int64_t changed = 0;
    for (std::size_t i = 0; i < x.n; ++i) {
      CHECK(labels[i] == data::nearest(x[i], centers, before[i]));
      changed += labels[i] != before[i];
    }
    CHECK(moved == changed);
  }
}

template <class T>
void check_grids() {
  // more rows and centers than a block and a group; integers, so that the plain loop is exact
  for (const std::size_t d : {1u, 2u, 3u, 8u, 17u, 70u}) {
    for (const std::size_t k : {1u, 2u, 15u, 16u, 17u, 33u, 300u}) {
      check_nearest(data::grid<T>(130, d, 4, d), data::grid<T>(k, d, 4, d + k), static_cast<const T*>(nullptr));
    }
    const std::vector<T> shift(d, T(2));
    check_nearest(data::grid<T>(130, d, 4, d), data::grid<T>(40, d, 4, 3), shift.data());
  }
}
TEST(the_panel_search_finds_the_nearest_with_ties_by_the_rule) {
  check_grids<float>();
  check_grids<double>();
}

template <class T>
void check_near_ties() {
  // Rows on the bisector of two centers, then a last digit off it: far too close for the tiles to tell.
  for (const std::size_t d : {2u, 19u, 100u}) {
    Matrix<T> centers(2, d), x(3, d);
    for (std::size_t i = 0; i < d; ++i) centers[0][i] = T(3), centers[1][i] = T(5);
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t i = 0; i < d; ++i) x[r][i] = T(4);
    }
    x[1][d - 1] = std::nextafter(T(4), T(0));
    x[2][d - 1] = std::nextafter(T(4), T(9));
    k2::Pool pool(1);
    const auto labels = k2::nearest_centers(x.rows(), centers.rows(), static_cast<const T*>(nullptr),
                                            static_cast<const k2::Sketch<T>*>(nullptr), pool);
    CHECK(labels[0] == 0 && labels[1] == 0);
    if (sizeof(T) == 4) CHECK(labels[2] == 1);  // in double the difference is below the last digit of the square
  }
}
TEST(a_last_digit_decides) {
  check_near_ties<float>();
  check_near_ties<double>();
}

template <class T>
void check_bounds_of_search() {
  // what a search says of distances must hold: the nearest is not farther, no other is nearer
  for (const std::size_t d : {3u, 64u, 300u}) {
    const auto x = data::blobs<T>(90, d, 10, 1), centers = data::blobs<T>(50, d, 10, 2);
    k2::Pool pool(1);
    k2::Panels<T> all, panels;
    all.pack(centers.rows(), nullptr, pool);
    std::vector<Label> listed(20);
    for (std::size_t s = 0; s < listed.size(); ++s) listed[s] = static_cast<Label>((s * 17 + 4) % 50);
    panels.pack(all, listed);
    k2::PanelSearch<T> search;
    std::vector<const T*> rows(x.n);
    std::vector<k2::Found> found(x.n);
    for (std::size_t i = 0; i < x.n; ++i) rows[i] = x[i];
    search(panels, rows.data(), x.n, [&](std::size_t) { return listed[0]; }, found.data());
    for (std::size_t i = 0; i < x.n; ++i) {
      double best = std::numeric_limits<double>::infinity();
      for (const Label j : listed)
        best = std::min(best, data::squared_distance(x[i], centers[static_cast<std::size_t>(j)], d));
      const double own = data::squared_distance(x[i], centers[static_cast<std::size_t>(found[i].label)], d);
      CHECK(own == best);
      CHECK(found[i].nearest >= own * (1 - 1e-14));  // the plain loop's own rounding
      for (const Label j : listed) {
        if (j == found[i].label) continue;
        CHECK(found[i].others <= data::squared_distance(x[i], centers[static_cast<std::size_t>(j)], d) * (1 + 1e-14));
      }
    }
  }
}
TEST(a_search_over_a_list_gives_bounds_that_hold) {
  check_bounds_of_search<float>();
  check_bounds_of_search<double>();
}

template <class T>
void check_neighbors(const Matrix<T>& first, const Matrix<T>& second, std::size_t width) {
  // twice, the second time with the neighbors and drifts of the first: the shortcut must not change the answer
  const std::size_t k = first.n, d = first.d;
  k2::Pool pool(3);
  k2::NeighborSearch<T> find_neighbors;
  k2::Centers<T> centers(first.value.data(), k, d);
  k2::Neighbors before, out;
  for (const Matrix<T>* now : {&first, &second}) {
    for (std::size_t j = 0; j < k; ++j) {
      centers.drift[j] = std::sqrt(data::squared_distance(centers[j], (*now)[j], d)) * (1 + 0x1p-30);
    }
    centers.value = now->value;
    std::swap(before, out);
    find_neighbors(centers, width, before, out, pool);
    CHECK(out.width == width);
    for (std::size_t l = 0; l < k; ++l) {
      std::vector<std::pair<double, Label>> want;
      for (std::size_t j = 0; j < k; ++j) {
        want.emplace_back(j == l ? -1.0 : k2::kernels<T>().squared_distance(centers[l], centers[j], d), Label(j));
      }
      std::sort(want.begin(), want.end());
      CHECK(out.ids(l)[0] == static_cast<Label>(l) && out.distances(l)[0] == 0.0);
      for (std::size_t s = 1; s < width; ++s) {
        CHECK(out.ids(l)[s] == want[s].second);
        CHECK(out.distances(l)[s] == std::sqrt(want[s].first));
      }
    }
  }
}

template <class T>
void check_all_neighbors() {
  for (const std::size_t k : {1u, 2u, 25u, 270u}) {
    for (const std::size_t width : {1u, 2u, 7u, 25u}) {
      if (width > k) continue;
      check_neighbors(data::blobs<T>(k, 9, 5, 1), data::blobs<T>(k, 9, 5, 2), width);
      check_neighbors(data::grid<T>(k, 2, 4, 1), data::grid<T>(k, 2, 4, 2), width);  // twins everywhere
    }
  }
  check_neighbors(data::blobs<T>(1100, 9, 5, 1), data::blobs<T>(1100, 9, 5, 2), 150);  // names around are not all
  const Matrix<T> one(120, 3), away = data::grid<T>(120, 3, 50, 4);                    // all equal, then not, and back
  check_neighbors(one, one, 9);
  check_neighbors(one, away, 9);
  check_neighbors(away, one, 9);
  auto near = data::blobs<T>(150, 12, 4, 7), moved = near;  // small moves: the bound from before bites
  for (T& v : moved.value) v += T(1e-3);
  check_neighbors(near, moved, 10);
  for (T& v : near.value) v += T(1000);  // far from the origin
  check_neighbors(near, near, 10);
}
TEST(the_neighbors_of_centers_are_those_of_brute_force_also_from_an_older_graph) {
  check_all_neighbors<float>();
  check_all_neighbors<double>();
}

bool same_set(std::span<const Label> a, std::span<const Label> b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

template <class T>
void check_refresh() {
  const std::size_t k = 900, d = 7, width = 20;
  const auto first = data::blobs<T>(k, d, 30, 1);
  k2::Centers<T> centers(first.value.data(), k, d);
  k2::Neighbors before, truth, out, alone;
  k2::Pool pool(3), one(1);
  k2::NeighborSearch<T> find_neighbors;
  k2::NeighborRefresh<T> refresh;
  find_neighbors(centers, width, {}, before, pool);
  CHECK(refresh.recall(centers, before, pool) == 1.0);
  CHECK(refresh(centers, before, out, pool) < k * k / 2);
  for (std::size_t l = 0; l < k; ++l) CHECK(same_set(out.ids(l), before.ids(l)));  // nothing has moved

  k2::Random random(5, 6);
  for (T& v : centers.value) v += T(0.2 * data::normal(random));
  find_neighbors(centers, width, {}, truth, pool);
  const std::uint64_t distances = refresh(centers, before, out, pool);
  CHECK(distances == refresh(centers, before, alone, one) && out.id == alone.id);
  const double had = refresh.recall(centers, before, pool), has = refresh.recall(centers, out, pool);
  CHECK(had < has && has > 0.9 && refresh.recall(centers, truth, pool) == 1.0);
  for (std::size_t l = 0; l < k; ++l) {
    auto square = [&](Label j) { return data::squared_distance(centers[l], centers[static_cast<std::size_t>(j)], d); };
    const auto ids = out.ids(l);
    std::vector<Label> sorted(ids.begin(), ids.end());
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    std::vector<double> squares;
    for (const Label j : ids) squares.push_back(square(j));
    const auto rest = squares.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(16, width));  // nearest first
    CHECK(std::find(squares.begin(), rest, 0.0) != rest);
    CHECK(*std::max_element(squares.begin(), rest) <= *std::min_element(rest, squares.end()) * (1 + 1e-12));
  }
}
TEST(refreshed_neighbors_are_nearly_all_true_and_the_audit_knows) {
  check_refresh<float>();
  check_refresh<double>();
}

// Each with itself, none twice, most of the true ones, and the same for any number of threads.
template <class T>
void check_graph(const k2::Neighbors& graph, const k2::Neighbors& truth, double enough) {
  std::size_t found = 0;
  for (std::size_t l = 0; l < truth.id.size() / truth.width; ++l) {
    const auto ids = graph.ids(l), want = truth.ids(l);
    CHECK(std::set<Label>(ids.begin(), ids.end()).size() == truth.width);
    CHECK(std::count(ids.begin(), ids.end(), static_cast<Label>(l)) == 1);
    for (const Label j : ids) found += static_cast<std::size_t>(std::count(want.begin(), want.end(), j));
  }
  CHECK(static_cast<double>(found) >= enough * static_cast<double>(truth.id.size()));
}

template <class T>
void check_group_neighbors() {
  const std::size_t k = 1500, width = 24;
  const auto places = data::blobs<T>(k, 6, 40, 3);
  const k2::Centers<T> centers(places.value.data(), k, 6);
  k2::Neighbors truth, out, alone;
  k2::Pool pool(3), one(1);
  k2::NeighborSearch<T>()(centers, width, {}, truth, pool);
  CHECK(k2::GroupNeighbors<T>::serves(k, width) && !k2::GroupNeighbors<T>::serves(k, 128));
  CHECK(k2::GroupNeighbors<T>()(centers, width, out, pool) < k * k / 2);
  k2::GroupNeighbors<T>()(centers, width, alone, one);
  CHECK(out.id == alone.id);
  check_graph<T>(out, truth, 0.9);
  const Matrix<T> same(k, 6);  // all twins: who is near is not said, but oneself is
  const k2::Centers<T> twins(same.value.data(), k, 6);
  k2::GroupNeighbors<T>()(twins, width, out, pool);
  check_graph<T>(out, truth, 0.0);
}
TEST(neighbors_looked_for_in_groups_are_nearly_all_true) {
  check_group_neighbors<float>();
  check_group_neighbors<double>();
}

TEST(a_graph_is_followed_and_takes_a_center_that_went_elsewhere) {
  const std::size_t k = 1500, width = 24;
  auto places = data::blobs<float>(k, 6, 40, 3);
  k2::Centers<float> centers(places.value.data(), k, 6);
  k2::Pool pool(2);
  k2::CenterGraph<float> graph(width);
  graph.add(std::vector<Label>(k, k2::kUnassigned), pool);  // there is none yet
  CHECK(graph.follow(centers, 0.8, pool) < k * k / 2);
  const std::vector<Label> before = graph.saved();
  CHECK(graph.follow(centers, 0.8, pool) == 32 * (k - 1) && graph.saved() == before);  // an audit, and it stays

  std::vector<Label> beside(k, k2::kUnassigned);  // center 7 now stands beside center 900
  beside[900] = 7;
  std::copy_n(centers[900], 6, places[7]);
  const k2::Centers<float> moved(places.value.data(), k, 6);
  graph.add(beside, pool);
  for (std::size_t l = 0; l < k; ++l) {
    const auto ids = graph.ids(l);
    CHECK(std::count(ids.begin(), ids.end(), static_cast<Label>(l)) == 1);
    CHECK(std::set<Label>(ids.begin(), ids.end()).size() == width);
    const auto had = std::span(before).subspan(l * width, width);
    const bool beside_it = l == 7 || std::count(had.begin(), had.end(), 900) > 0;
    CHECK(!beside_it || std::count(ids.begin(), ids.end(), 7) == 1);
  }
  k2::Neighbors truth;
  k2::NeighborSearch<float>()(moved, width, {}, truth, pool);
  for (const std::size_t l : {7, 900}) {
    const auto ids = graph.ids(l), want = truth.ids(l);
    const auto found =
        std::count_if(ids.begin(), ids.end(), [&](Label j) { return std::count(want.begin(), want.end(), j); });
    CHECK(found >= 18);
  }
}

template <class T>
void check_measures() {
  const auto x = data::blobs<T>(700, 13, 6, 1), centers = data::blobs<T>(20, 13, 6, 2);
  std::vector<double> weights(x.n);
  std::vector<Label> labels(x.n);
  double energy = 0.0;
  for (std::size_t i = 0; i < x.n; ++i) {
    weights[i] = 1.0 + static_cast<double>(i % 5), labels[i] = static_cast<Label>(i % 20);
    energy += weights[i] * data::squared_distance(x[i], centers[i % 20], 13);
  }
  std::vector<double> got;
  for (const int threads : {1, 2, 5}) {
    k2::Pool pool(threads);
    got.push_back(k2::energy_of(x.rows(), weights.data(), centers.rows(), labels.data(), pool));
    const auto distances = k2::all_distances(x.rows(), centers.rows(), pool);
    for (std::size_t i = 0; i < x.n; ++i) {
      for (std::size_t j = 0; j < 20; ++j) {
        const double truth = std::sqrt(data::squared_distance(x[i], centers[j], 13));
        CHECK(std::abs(distances[i * 20 + j] - truth) <= truth * (k2::kUnit<T> + 1e-15));
      }
    }
  }
  CHECK(std::abs(got[0] - energy) <= 1e-13 * energy);
  CHECK(got[0] == got[1] && got[1] == got[2]);
}
TEST(energy_and_distances_are_those_of_plain_loops) {
  check_measures<float>();
  check_measures<double>();
}

}  // namespace
