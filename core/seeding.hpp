// Where to start: k-means++ and Greedy Divisive Initialisation (Algorithm 2).
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "distance.hpp"
#include "parallel.hpp"
#include "random.hpp"
#include "sampled_split.hpp"
#include "survey.hpp"
#include "types.hpp"

namespace k2 {

// ---- k-means++ (Arthur and Vassilvitskii 2007) -------------------------------------------------------------------

struct Chosen {
  std::vector<std::int64_t> rows;
  Ops ops;
};

// D² sampling. With more than one trial, the candidate that lowers the energy most is taken.
template <class T>
Chosen plus_plus(Rows<const T> x, const double* weights, std::size_t k, int trials, std::uint64_t seed, Pool& pool) {
  constexpr std::size_t kChunk = 1024;
  const Kernels<T>& kernel = kernels<T>();
  Random random(seed, 1);
  const std::size_t chunks = (x.n + kChunk - 1) / kChunk;
  std::vector<double> cost(x.n), chunk(chunks), trial(x.n), trial_chunk(chunks);
  auto weight = [&](std::size_t i) { return weights ? weights[i] : 1.0; };

  // A row drawn with probability proportional to its entry in `values`, whose chunk sums are known.
  auto draw = [&](auto&& value, const std::vector<double>& sums) {
    double total = 0.0;
    for (const double s : sums) total += s;
    double left = random.uniform() * total;
    std::size_t c = 0;
    while (c + 1 < chunks && left >= sums[c]) left -= sums[c++];
    std::size_t i = c * kChunk;
    const std::size_t end = std::min(x.n, i + kChunk);
    while (i + 1 < end && left >= value(i)) left -= value(i++);
    while (i > 0 && value(i) == 0.0) --i;  // rounding may end on a row that cannot be drawn
    return i;
  };
  // cost of every row if row `c` joins the centers, and its sums over chunks
  auto measure = [&](std::size_t c, bool first, std::vector<double>& out, std::vector<double>& sums) {
    pool.for_chunks(x.n, kChunk, [&](std::size_t a, std::size_t b, int) {
      double s = 0.0;
      for (std::size_t i = a; i < b; ++i) {
        const double v = kernel.squared_distance(x[i], x[c], x.d) * weight(i);
        out[i] = first ? v : std::min(v, cost[i]);
        s += out[i];
      }
      sums[a / kChunk] = s;
    });
  };

  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t i = c * kChunk; i < std::min(x.n, (c + 1) * kChunk); ++i) chunk[c] += weight(i);
  }
  Chosen out;
  out.rows.push_back(static_cast<std::int64_t>(draw(weight, chunk)));
  measure(static_cast<std::size_t>(out.rows[0]), true, cost, chunk);
  out.ops.distances += x.n;
  while (out.rows.size() < k) {
    double best = std::numeric_limits<double>::infinity();
    std::size_t taken = 0;
    std::vector<double> best_cost, best_chunk;
    std::vector<std::size_t> drawn;
    for (int t = 0; t < trials; ++t) drawn.push_back(draw([&](std::size_t i) { return cost[i]; }, chunk));
    for (const std::size_t c : drawn) {
      measure(c, false, trial, trial_chunk);
      out.ops.distances += x.n;
      double total = 0.0;
      for (const double s : trial_chunk) total += s;
      if (total >= best) continue;
      best = total, taken = c;
      if (trials > 1) best_cost = trial, best_chunk = trial_chunk;
    }
    if (trials > 1) {
      cost.swap(best_cost), chunk.swap(best_chunk);
    } else {
      cost.swap(trial), chunk.swap(trial_chunk);
    }
    out.rows.push_back(static_cast<std::int64_t>(taken));
  }
  return out;
}

// ---- Greedy Divisive Initialisation (Algorithm 2) ----------------------------------------------------------------

template <class T>
struct Division {
  std::vector<T> centers;     // k x d; fewer distinct rows than k: the rest repeat the first
  std::vector<Label> labels;  // n
  Ops ops;
  std::size_t found = 0;  // clusters that have rows
};

// Splits the cluster of highest energy until there are k. A split depends only on its cluster, whose random numbers
// come from its place in the tree; so splits that will be wanted soon are made ahead, several at a time, and taken up
// in the order of the algorithm. Those never taken up (a few, at the end) are not charged.
template <class T>
class GreedyDivision {
 public:
  GreedyDivision(Rows<const T> x, const double* weights, std::uint64_t seed, int iterations)
      : x_(x), weights_(weights), seed_(seed), iterations_(iterations) {}

  // `fast`: the first lines are found on samples, and clusters are named in the order of the tree's leaves; else as
  // they come into being.
  Division<T> operator()(std::size_t k, const Survey& survey, Pool& pool, bool fast = false) {
    order_.resize(x_.n);
    for (std::size_t i = 0; i < x_.n; ++i) order_[i] = static_cast<Row>(i);
    for (int w = 0; w < pool.size(); ++w) splitters_.emplace_back(x_, weights_, fast);
    nodes_.push_back({0, x_.n, {survey.mean, survey.total, survey.weight}, 1});
    energy_ = survey.total;
    waiting_.push(0);
    std::vector<std::size_t> clusters{0};  // the node of each label
    Ops ops;
    while (clusters.size() < k && !waiting_.empty()) {
      const std::size_t j = waiting_.top();
      if (!nodes_[j].split) split_ahead(k - clusters.size(), pool);
      waiting_.pop();
      ops += nodes_[j].split->ops;
      if (nodes_[j].split->left == 0) continue;  // all its rows are equal: a leaf for good
      const std::size_t a = divide(j);
      clusters[nodes_[j].label] = a;
      nodes_[a].label = nodes_[j].label;
      nodes_[a + 1].label = clusters.size();
      clusters.push_back(a + 1);
    }
    if (fast) {  // then those near each other have names near each other
      std::sort(clusters.begin(), clusters.end(), [&](auto a, auto b) { return nodes_[a].begin < nodes_[b].begin; });
    }
    return finish(clusters, k, ops);
  }

 private:
  using Split = SampledSplit<T>;
  struct Node {
    std::size_t begin, end;  // its rows in order_
    Half half;
    std::uint64_t path;  // 1, then a bit for each turn, mixed: names the node whatever the order of splits
    std::size_t label = 0;
    std::unique_ptr<typename Split::Result> split{};
    std::size_t size() const { return end - begin; }
  };
  // Highest energy first; then the larger, then the older.
  struct Later {
    const std::deque<Node>* nodes;
    bool operator()(std::size_t a, std::size_t b) const {
      const Node &m = (*nodes)[a], &n = (*nodes)[b];
      if (m.half.energy != n.half.energy) return m.half.energy < n.half.energy;
      return m.size() != n.size() ? m.size() < n.size() : a > b;
    }
  };

  std::size_t divide(std::size_t j) {
    const std::size_t a = nodes_.size(), middle = nodes_[j].begin + nodes_[j].split->left;
    const std::uint64_t path = nodes_[j].path;
    const auto split = std::move(nodes_[j].split);
    energy_ += split->a.energy + split->b.energy - nodes_[j].half.energy;
    nodes_.push_back({nodes_[j].begin, middle, std::move(split->a), Random::mix(2 * path)});
    nodes_.push_back({middle, nodes_[j].end, std::move(split->b), Random::mix(2 * path + 1)});
    for (std::size_t side = 0; side < 2; ++side) nodes_[a + side].split = std::move(split->inside[side]);
    waiting_.push(a);
    waiting_.push(a + 1);
    return a;
  }

  // Split the next in the queue, and with it others that come soon: half its energy or more, not more than wanted.
  void split_ahead(std::size_t wanted, Pool& pool) {
    constexpr std::size_t kLarge = std::size_t{1} << 21;  // values: larger nodes get all threads, one after the other
    std::vector<std::size_t> batch, seen;
    const double enough = nodes_[waiting_.top()].half.energy / 2;
    while (!waiting_.empty() && seen.size() < wanted && nodes_[waiting_.top()].half.energy >= enough) {
      seen.push_back(waiting_.top());
      waiting_.pop();
      if (!nodes_[seen.back()].split) batch.push_back(seen.back());
    }
    for (const std::size_t j : seen) waiting_.push(j);
    const std::size_t large = batch.size() == 1 ? kLarge / 16 : kLarge;  // there is nothing else to do
    std::vector<std::size_t> small;
    for (const std::size_t j : batch) {
      if (nodes_[j].size() * x_.d >= large) {
        split(nodes_[j], wanted, 0, pool);
      } else {
        small.push_back(j);
      }
    }
    pool.for_chunks(small.size(), 1, [&](std::size_t i, std::size_t, int worker) {
      Pool alone(1, worker == 0 ? pool.poll() : Pool::Poll());
      split(nodes_[small[i]], wanted, worker, alone);
    });
  }

  // With it some of those that follow: its share of what is wanted, by energy.
  void split(Node& node, std::size_t wanted, int worker, Pool& pool) {
    const double share = energy_ > 0 ? std::min(1.0, node.half.energy / energy_) : 1.0;
    const auto most = 1 + static_cast<std::size_t>(share * static_cast<double>(wanted - 1));
    node.split = std::make_unique<typename Split::Result>(splitters_[static_cast<std::size_t>(worker)](
        {order_.data() + node.begin, node.size()}, node.half, iterations_, most, Random(seed_, node.path), pool));
  }

  Division<T> finish(const std::vector<std::size_t>& clusters, std::size_t k, Ops ops) const {
    Division<T> out;
    out.ops = ops;
    out.found = clusters.size();
    out.labels.resize(x_.n);
    for (std::size_t l = 0; l < clusters.size(); ++l) {
      const Node& node = nodes_[clusters[l]];
      for (const double v : node.half.mean) out.centers.push_back(static_cast<T>(v));
      for (std::size_t i = node.begin; i < node.end; ++i) out.labels[order_[i]] = static_cast<Label>(l);
    }
    while (out.centers.size() < k * x_.d) out.centers.push_back(out.centers[out.centers.size() % x_.d]);
    return out;
  }

  Rows<const T> x_;
  const double* weights_;
  std::uint64_t seed_;
  int iterations_;
  std::vector<Row> order_;
  std::vector<Split> splitters_;  // one for each worker, for its scratch
  double energy_ = 0.0;           // of all clusters so far
  std::deque<Node> nodes_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, Later> waiting_{Later{&nodes_}};
};

}  // namespace k2
