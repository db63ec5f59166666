// Rows to centers none of which may have more than `cap` of them, at nearly the least cost: an auction (Bertsekas).
//
// A center with room asks nothing. One that is full asks the lowest bid it holds; who bids more takes that place, and
// the row put out bids again. A row goes where cost and price are least, and bids what makes the second best as good,
// and a step more. So no row is worse off than at its best center by more than a step, and centers with room have price
// zero: the cost of all rows is above the least one by at most a step for each.
//
// When rows outbid each other by steps alone, the step grows, so that this ends whatever the data.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "offers.hpp"
#include "parallel.hpp"
#include "refill.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class AssignCapped {
 public:
  AssignCapped(Rows<const T> x, const double* weights, Rows<const T> centers, std::size_t cap, double step, Pool& pool)
      : x_(x),
        centers_(centers.data, centers.n, centers.d),
        cap_(cap),
        step_(step),
        offers_(x, weights, centers, pool),
        price_(centers.n, 0.0),
        held_(centers.n) {}

  // n <= k cap. `labels`: of each row a center near it; then, that of its place.
  void operator()(std::span<Label> labels, Pool& pool) {
    ops_ += offers_.look(labels, pool);
    begin();
    while (!waiting_.empty() || !unsure_.empty()) {
      if (waiting_.empty()) look_again(pool);
      bidding_.clear(), std::swap(bidding_, waiting_);
      pool.for_chunks(1, 1, [&](std::size_t, std::size_t, int) {  // one after the other; the pool asks for Ctrl-C
        for (const Row i : bidding_) bid(i);
      });
    }
    for (std::size_t j = 0; j < held_.size(); ++j) {
      for (const Bid& b : held_[j]) labels[b.row] = static_cast<Label>(j);
    }
    fill_empty(labels, pool);
  }

  const Ops& ops() const { return ops_; }
  double step() const { return step_; }  // as it has grown
  std::span<const double> prices() const { return price_; }

 private:
  static constexpr std::size_t kPatience = 16;    // bids for each row, after which the step doubles
  static constexpr std::size_t kLook = 16;        // bids that a look at all centers counts for
  static constexpr std::size_t kTogether = 1024;  // rows that look, so that all threads have work

  struct Bid {
    double amount;
    Row row;
    bool operator<(const Bid& o) const { return amount != o.amount ? amount > o.amount : row > o.row; }
  };

  // Rows are at their nearest centers for a bid of zero, except where too many would be.
  void begin() {
    std::vector<std::size_t> wanted(held_.size(), 0);
    for (std::size_t i = 0; i < x_.n; ++i) ++wanted[static_cast<std::size_t>(offers_.nearest(i))];
    for (std::size_t i = 0; i < x_.n; ++i) {
      const auto j = static_cast<std::size_t>(offers_.nearest(i));
      wanted[j] > cap_ ? waiting_.push_back(static_cast<Row>(i)) : place(j, {0.0, static_cast<Row>(i)});
    }
  }

  // As late as can be: the higher the prices, the longer what rows see will do. And not more of them than may find
  // room there: the others would have to look once more.
  void look_again(Pool& pool) {
    const std::size_t some = std::min(unsure_.size(), std::max(kTogether, offers_.kept() * cap_));
    waiting_.assign(unsure_.end() - static_cast<std::ptrdiff_t>(some), unsure_.end());
    unsure_.resize(unsure_.size() - some);
    ops_ += offers_.look_at_all(waiting_, price_, pool);
    effort_ += kLook * some;
  }

  void bid(Row i) {
    if (++effort_ > kPatience * x_.n) step_ *= 2, effort_ = 0;
    const auto two = offers_.two_least(i, price_);
    if (!two.is_known) return unsure_.push_back(i);
    const auto j = static_cast<std::size_t>(two.best);
    place(j, {price_[j] + (two.second - two.first) + step_, i});
  }

  void place(std::size_t j, const Bid& bid) {
    auto& heap = held_[j];  // the lowest bid in front
    if (heap.size() == cap_) {
      waiting_.push_back(heap.front().row);
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.push_back(bid);
    std::push_heap(heap.begin(), heap.end());
    if (heap.size() == cap_) price_[j] = heap.front().amount;
  }

  // A center that nobody wants gets a row that costs much.
  void fill_empty(std::span<Label> labels, Pool& pool) {
    std::vector<std::size_t> size(held_.size());
    for (std::size_t j = 0; j < size.size(); ++j) size[j] = held_[j].size();
    if (std::find(size.begin(), size.end(), 0) == size.end()) return;
    Costliest costliest(x_, centers_, labels, pool);
    for (std::size_t j = 0; j < size.size(); ++j) {
      while (size[j] == 0) {
        const Row i = costliest.take();
        if (size[static_cast<std::size_t>(labels[i])] == 1) continue;
        --size[static_cast<std::size_t>(labels[i])], ++size[j];
        labels[i] = static_cast<Label>(j);
      }
    }
  }

  Rows<const T> x_;
  Centers<T> centers_;
  std::size_t cap_, effort_ = 0;  // since the step last grew
  double step_;
  Offers<T> offers_;
  std::vector<double> price_;
  std::vector<std::vector<Bid>> held_;           // of each center, a heap
  std::vector<Row> waiting_, bidding_, unsure_;  // without a place; of these, those that must look again
  Ops ops_;
};

}  // namespace k2
