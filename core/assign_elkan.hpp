// Elkan's assignment (2003), as in the textbook: n x k lower bounds, one upper bound a row, all centers considered.
//
// Use it as the witness of the other methods, or for operation counts; its memory is 4 n k bytes.
#pragma once

#include <limits>
#include <vector>

#include "contest.hpp"
#include "groups.hpp"
#include "parallel.hpp"

namespace k2 {

template <class T>
class Elkan {
 public:
  Assigned operator()(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    const bool fresh = lower_.empty();
    if (fresh) {
      lower_.assign(x.n * centers.k, 0.0f);
      upper_.assign(x.n, std::numeric_limits<float>::infinity());
    }
    if (fresh && x.n > 0 && labels[0] == kUnassigned) return start(x, centers, labels, pool);

    groups_.sort(labels, centers.k, labels.size(), pool);
    Assigned out = pool.tally<Assigned>(
        centers.k, 1, [&](std::size_t l, std::size_t, int) { return assign_cluster(x, centers, l, labels); });
    out.ops.distances += static_cast<std::uint64_t>(centers.k) * (centers.k - 1) / 2;
    return out;
  }

  void forget(Row i) {
    const std::size_t k = lower_.size() / upper_.size();
    std::fill_n(lower_.begin() + static_cast<std::ptrdiff_t>(i * k), k, 0.0f);
    upper_[i] = std::numeric_limits<float>::infinity();
  }

 private:
  // The first iteration measures all distances, as Lloyd does.
  Assigned start(Rows<const T> x, const Centers<T>& centers, std::span<Label> labels, Pool& pool) {
    const Slack slack = Slack::of<T>(x.d);
    pool.for_chunks(x.n, 64, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t i = a; i < b; ++i) {
        Contest<T> contest(centers, x[i], kUnassigned);
        for (std::size_t j = 0; j < centers.k; ++j) {
          lower_[i * centers.k + j] = slack.below(contest.enter(static_cast<Label>(j)));
        }
        labels[i] = contest.best();
        upper_[i] = slack.above(contest.square());
      }
    });
    Assigned out;
    out.moved = static_cast<std::int64_t>(x.n);
    out.ops.distances = static_cast<std::uint64_t>(x.n) * centers.k;
    return out;
  }

  // Elkan's step 1, for one cluster at a time: the distances of its center to all others.
  Assigned assign_cluster(Rows<const T> x, const Centers<T>& centers, std::size_t l, std::span<Label> labels) {
    Assigned out;
    const auto members = groups_.members(l);
    if (members.empty()) return out;
    std::vector<double> gap(centers.k);
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < centers.k; ++j) {
      gap[j] = std::sqrt(kernels<T>().squared_distance(centers[l], centers[j], centers.d));
      if (j != l) nearest = std::min(nearest, gap[j]);
    }
    for (const Row i : members) {
      const Label before = labels[i];
      out.ops.distances += assign_row(x[i], i, centers, l, gap, nearest, labels);
      out.moved += labels[i] != before;
    }
    return out;
  }

  // Steps 2 and 3 for one row, after steps 5 and 6 of the iteration before. Returns the distances measured.
  std::uint64_t assign_row(const T* row, Row i, const Centers<T>& centers, std::size_t l,
                           const std::vector<double>& gap, double nearest, std::span<Label> labels) {
    const Slack slack = Slack::of<T>(centers.d);
    float* lower = lower_.data() + i * centers.k;
    for (std::size_t j = 0; j < centers.k; ++j) lower[j] = Slack::down(lower[j] - centers.drift[j]);
    double upper = upper_[i] = Slack::up(upper_[i] + centers.drift[l]);
    if (upper < nearest / 2) return 0;

    Contest<T> contest(centers, row, static_cast<Label>(l));
    double own = upper;
    bool stale = true;
    std::uint64_t measured = 0;
    for (std::size_t j = 0; j < centers.k; ++j) {
      // Skipped only if strictly farther than the best so far, so that ties are seen.
      if (j == l || lower[j] > upper || gap[j] > own + upper) continue;
      if (stale) {
        const double d = contest.enter(static_cast<Label>(l));
        lower[l] = slack.below(d);
        own = upper = slack.above(d);
        stale = false;
        ++measured;
        if (lower[j] > upper || gap[j] > own + upper) continue;
      }
      lower[j] = slack.below(contest.enter(static_cast<Label>(j)));
      upper = slack.above(contest.square());
      ++measured;
    }
    upper_[i] = static_cast<float>(upper);
    if (!stale) labels[i] = contest.best();
    return measured;
  }

  std::vector<float> lower_, upper_;
  Groups groups_;
};

}  // namespace k2
