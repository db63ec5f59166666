// The forest of kd-trees: within its budget it meets different points, the nearest first more often than not.
#include "kdtree.hpp"

#include <set>

#include "check.hpp"
#include "data.hpp"

namespace {

using data::Matrix;
using k2::kUnassigned;
using k2::Label;

template <class T>
struct Forest {
  k2::KdForest<T> forest;
  typename k2::KdForest<T>::Scratch scratch;

  Forest(const Matrix<T>& points, std::size_t trees) : scratch(points.n) {
    k2::Pool pool(2);
    forest.build(points.rows(), trees, 7, pool);
  }
  std::vector<Label> met(const T* q, std::size_t checks, Label known = kUnassigned) {
    std::vector<Label> out;
    forest.search(q, checks, known, scratch, [&](Label j) { out.push_back(j); });
    return out;
  }
};

template <class T>
void check_budget(const Matrix<T>& points, std::size_t trees) {
  Forest<T> forest(points, trees);
  const Matrix<T> queries = data::blobs<T>(20, points.d, 3, 5);
  for (const std::size_t checks : {0, 1, 2, 3, 5, 14, 40, 1000}) {
    for (std::size_t i = 0; i < queries.n; ++i) {
      for (const Label known : {kUnassigned, Label(i % points.n)}) {
        const std::vector<Label> met = forest.met(queries[i], checks, known);
        const std::size_t others = points.n - (known != kUnassigned);
        CHECK(met.size() == std::min(checks, others));
        const std::set<Label> different(met.begin(), met.end());
        CHECK(different.size() == met.size() && !different.contains(known));
        CHECK(different.empty() || (*different.begin() >= 0 && *different.rbegin() < Label(points.n)));
      }
    }
  }
}
TEST(a_search_meets_as_many_different_points_as_it_may) {
  for (const std::size_t trees : {1, 2, 8}) {
    check_budget(data::blobs<float>(300, 6, 9, 1), trees);
    check_budget(data::blobs<double>(15, 1, 3, 2), trees);
    check_budget(data::grid<double>(200, 2, 3, 3), trees);  // equal points: no column tells them apart
    check_budget(data::blobs<float>(1, 4, 1, 4), trees);
  }
}

TEST(a_small_budget_has_no_favourites) {
  const auto points = data::blobs<float>(200, 6, 20, 1), queries = data::blobs<float>(2000, 6, 20, 2);
  Forest<float> forest(points, 8);
  int low = 0, all = 0;
  for (std::size_t i = 0; i < queries.n; ++i) {
    for (const Label j : forest.met(queries[i], 3)) low += j < 100, ++all;
  }
  CHECK(all == 6000 && low > 2000 && low < 4000);  // about half; in the order of their indices it would be nine tenths
}

// Of 300 points, how often is the nearest met within so many checks?
template <class T>
int hits(const Matrix<T>& points, const Matrix<T>& queries, std::size_t checks) {
  Forest<T> forest(points, 8);
  int found = 0;
  for (std::size_t i = 0; i < queries.n; ++i) {
    const Label nearest = data::nearest(queries[i], points, kUnassigned);
    const std::vector<Label> met = forest.met(queries[i], checks);
    found += std::find(met.begin(), met.end(), nearest) != met.end();
  }
  return found;
}
TEST(the_best_bins_come_first) {
  const auto points = data::blobs<float>(300, 8, 30, 1), queries = data::blobs<float>(200, 8, 30, 2);
  const int few = hits(points, queries, 10), some = hits(points, queries, 60);
  CHECK(few > 3 * 200 * 10 / 300 && some > few && some > 2 * 200 * 60 / 300);  // far better than a draw
  CHECK(hits(points, queries, 300) == 200);
}

}  // namespace
