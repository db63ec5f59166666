// Groups of centers, own lists, and the kernels they are made with.
#include <numeric>
#include <set>

#include "check.hpp"
#include "data.hpp"
#include "own_lists.hpp"

namespace {

using data::Matrix;
using k2::Label;
using k2::Row;

template <class T>
k2::Centers<T> as_centers(const Matrix<T>& m) {
  return k2::Centers<T>(m.value.data(), m.n, m.d);
}

template <class T>
k2::Panels<T> packed(const k2::Centers<T>& centers) {
  k2::Pool pool(1);
  k2::Panels<T> out;
  out.pack({centers.value.data(), centers.k, centers.d}, nullptr, pool);
  return out;
}

template <class T>
void check_groups(std::size_t k, std::size_t d, int threads) {
  const auto centers = as_centers(data::blobs<T>(k, d, 20, k + d));
  k2::Pool pool(threads), alone(1);
  k2::CenterGroups<T> groups, again;
  const auto all = packed(centers);
  groups.form(all, pool), again.form(all, alone);
  std::set<Label> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& members = groups.members(g);
    CHECK(members.count() <= groups.kSize && 2 * members.count() >= std::min(groups.kSize, k));
    for (std::size_t s = 0; s < members.count(); ++s) {
      seen.insert(members.id(s));
      CHECK(groups.of(members.id(s)) == static_cast<Label>(g));
      CHECK(members.id(s) == again.members(g).id(s));
    }
    CHECK(groups.near(g)[0] == static_cast<Label>(g));
    CHECK(groups.near(g).size() == std::min(groups.kNear, groups.size()));
  }
  CHECK(seen.size() == k);
}
TEST(every_center_is_in_one_group_and_groups_are_of_nearly_one_size) {
  for (const std::size_t k : {1, 2, 31, 32, 33, 100, 1000, 2500}) {
    check_groups<float>(k, 7, 3);
    check_groups<double>(k, 40, 2);
  }
}

TEST(equal_centers_make_groups_too) {
  Matrix<float> same(100, 5);
  k2::Pool pool(2);
  k2::CenterGroups<float> groups;
  const auto centers = as_centers(same);
  const auto all = packed(centers);
  groups.form(all, pool);
  CHECK(groups.size() == 4);
  for (std::size_t g = 0; g < groups.size(); ++g) CHECK(groups.members(g).count() == 25);
}

struct Swept {
  std::vector<Label> lists;
  k2::Assigned assigned;
  std::size_t looked = 0;
};

// All rows, in turns.
template <class T>
Swept sweep(const Matrix<T>& x, const Matrix<T>& middles, std::size_t turns, int threads) {
  const auto centers = as_centers(middles);
  const auto all = packed(centers);
  k2::Pool pool(threads);
  std::vector<Label> labels(x.n, 0);
  for (std::size_t i = 0; i < x.n; ++i) labels[i] = static_cast<Label>(i % middles.n);
  k2::OwnLists<T> lists(turns);
  std::vector<int> looked(x.n, 0);
  Swept out;
  for (std::size_t t = 0; t < turns; ++t) {
    CHECK(lists.due(t));
    k2::Groups sorted;
    out.assigned += lists.sweep({x.rows(), all, labels, {x.n, turns, t}}, sorted, pool, [&](std::span<const Row> rows) {
      for (const Row i : rows) ++looked[i];
      return k2::Assigned();
    });
    CHECK(!lists.due(t));
  }
  CHECK(std::all_of(looked.begin(), looked.end(), [](int times) { return times == 1; }));
  for (std::size_t i = 0; i < x.n; ++i) {
    const Label* list = lists.of(static_cast<Row>(i));
    out.lists.insert(out.lists.end(), list, list + lists.length());
  }
  return out;
}

// Where all groups are asked, the list has the nearest centers: up to rounding, no other is nearer than its farthest.
template <class T>
void check_nearest(std::size_t k, std::size_t d, std::size_t turns) {
  const auto x = data::blobs<T>(700, d, 30, 3), middles = data::blobs<T>(k, d, 30, 4);
  const std::size_t length = std::min<std::size_t>(k, k2::OwnLists<T>::kLength);
  const Swept swept = sweep(x, middles, turns, 2);
  CHECK(swept.lists == sweep(x, middles, turns, 1).lists);
  for (std::size_t i = 0; i < x.n; ++i) {
    const std::set<Label> list(swept.lists.begin() + static_cast<std::ptrdiff_t>(i * length),
                               swept.lists.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
    CHECK(list.size() == length);
    double farthest = 0.0, norm = data::squared_distance(x[i], std::vector<T>(d, T(0)).data(), d);
    for (const Label j : list) {
      farthest = std::max(farthest, data::squared_distance(x[i], middles[static_cast<std::size_t>(j)], d));
    }
    for (std::size_t j = 0; j < k; ++j) {
      const double square = data::squared_distance(x[i], middles[j], d);
      CHECK(list.count(static_cast<Label>(j)) || square >= farthest - 1e-4 * (norm + farthest));
    }
  }
}
TEST(lists_have_the_nearest_centers_where_all_groups_are_asked) {
  for (const std::size_t k : {1, 5, 8, 9, 60, 250}) {  // up to 8 groups
    check_nearest<float>(k, 20, 1);
    check_nearest<double>(k, 3, 2);
    check_nearest<float>(k, 50, 4);
  }
}

TEST(lists_find_most_of_the_nearest_among_many_groups) {
  const auto x = data::blobs<float>(2000, 16, 200, 5), middles = data::blobs<float>(3000, 16, 200, 5);
  const Swept swept = sweep(x, middles, 2, 2);
  std::size_t found = 0;
  for (std::size_t i = 0; i < x.n; ++i) {
    const auto list = swept.lists.begin() + static_cast<std::ptrdiff_t>(i * 8);
    found += std::count(list, list + 8, data::nearest(x[i], middles, k2::kUnassigned)) > 0;
  }
  CHECK(found > x.n * 6 / 10);  // the rows' labels are wrong here: they begin anywhere
  CHECK(swept.assigned.ops.products < x.n * middles.n / 4);
}

TEST(lists_are_due_when_few_rows_move_and_when_nothing_does) {
  const auto x = data::blobs<float>(300, 4, 30, 3);
  const auto centers = as_centers(data::blobs<float>(50, 4, 30, 4));
  const auto all = packed(centers);
  k2::Pool pool(1);
  const std::vector<Label> labels(x.n, 0);
  k2::OwnLists<float> lists(1);
  auto iterate = [&](std::int64_t moved) {
    const bool due = lists.due(0);
    if (due) {
      k2::Groups sorted;
      lists.sweep({x.rows(), all, labels, {x.n}}, sorted, pool, [](std::span<const Row>) { return k2::Assigned(); });
    }
    lists.end_iteration(moved);
    return due;
  };
  CHECK(iterate(100) && !iterate(60) && !iterate(34) && !iterate(33));
  CHECK(iterate(40) && !iterate(14) && !iterate(13));
  k2::OwnLists<float> restored(1);
  const auto saved = lists.saved();
  CHECK(saved.size() == k2::OwnLists<float>::saved_size(x.n, 50, 1));
  restored.restore(saved, x.n);
  CHECK(restored.due(0) && restored.saved() == saved);
  CHECK(iterate(0) && !lists.look_around_first());  // nothing moved with new lists
  CHECK(!iterate(0) && lists.look_around_first() && iterate(0));
  lists.renew();
  CHECK(lists.due(0));
}

// After a swap, the center that went elsewhere is on every list that has the one beside which it is now, once; the
// others are as they were.
TEST(lists_take_a_center_that_now_stands_beside_one_of_theirs) {
  const auto x = data::blobs<float>(500, 6, 30, 3);
  const auto centers = as_centers(data::blobs<float>(60, 6, 30, 4));
  const auto all = packed(centers);
  k2::Pool pool(2);
  const std::vector<Label> labels(x.n, 0);
  k2::OwnLists<float> lists(1);
  std::vector<Label> beside(60, k2::kUnassigned);
  lists.add(beside, pool);  // there are none yet
  k2::Groups sorted;
  lists.sweep({x.rows(), all, labels, {x.n}}, sorted, pool, [](std::span<const Row>) { return k2::Assigned(); });
  auto list = [&](std::size_t i) {
    return std::vector<Label>(lists.of(static_cast<Row>(i)), lists.of(static_cast<Row>(i)) + lists.length());
  };
  std::vector<std::vector<Label>> before;
  for (std::size_t i = 0; i < x.n; ++i) before.push_back(list(i));
  beside[static_cast<std::size_t>(before[0][0])] = before[250][0] == before[0][0] ? before[250][1] : before[250][0];
  const Label cut = before[0][0], added = beside[static_cast<std::size_t>(cut)];
  lists.add(beside, pool);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < x.n; ++i) {
    const auto now = list(i);
    const bool had_both = std::count(before[i].begin(), before[i].end(), added) > 0;
    if (std::count(before[i].begin(), before[i].end(), cut) == 0 || had_both) {
      CHECK(now == before[i]);
      continue;
    }
    CHECK(std::count(now.begin(), now.end(), cut) == 1 && std::count(now.begin(), now.end(), added) == 1);
    CHECK(std::set<Label>(now.begin(), now.end()).size() == now.size());
    ++changed;
  }
  CHECK(changed > 0);
}

}  // namespace
