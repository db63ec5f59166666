// Centers in groups of those near each other, all of nearly the same size, and the groups near each group. A row that
// asks the groups near it finds the centers near it among a few hundred, however many there are.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "neighbors.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

template <class T>
class CenterGroups {
 public:
  static constexpr std::size_t kSize = 32;  // of a group, at most
  static constexpr std::size_t kNear = 64;  // groups near a group, itself included, at most

  std::size_t size() const { return members_.size(); }
  Label of(Label center) const { return of_[static_cast<std::size_t>(center)]; }
  const Panels<T>& members(std::size_t g) const { return members_[g]; }
  const Panels<T>& middles() const { return search_.panels(); }
  std::span<const Label> near(std::size_t g) const { return graph_.ids(g); }

  // Halves the centers along their widest direction, and the halves, and so on.
  Ops form(const Panels<T>& all, Pool& pool) {
    const Rows<const T> centers = all.centers();
    const std::size_t groups = (centers.n + kSize - 1) / kSize;
    ids_.resize(centers.n), of_.resize(centers.n), members_.resize(groups);
    for (std::size_t j = 0; j < centers.n; ++j) ids_[j] = static_cast<Label>(j);
    std::vector<Node> nodes{{0, centers.n, 0, groups}}, halves;
    Ops ops;
    for (; nodes.size() < groups; nodes.swap(halves), ops.products += centers.n) {
      halves.resize(2 * nodes.size());
      pool.for_chunks(nodes.size(), 1,
                      [&](std::size_t p, std::size_t, int) { halve(centers, nodes[p], &halves[2 * p]); });
      std::erase_if(halves, [](const Node& node) { return node.groups == 0; });
    }
    middle_.resize(groups * centers.d);
    pool.for_chunks(groups, 8, [&](std::size_t a, std::size_t b, int) {
      for (std::size_t g = a; g < b; ++g) close(all, nodes[g]);
    });
    middles_ = Centers<T>(middle_.data(), groups, centers.d);
    search_(middles_, std::min(kNear, groups), Neighbors(), graph_, pool);
    ops.distances = static_cast<std::uint64_t>(groups) * (groups - 1) / 2;
    return ops;
  }

 private:
  static constexpr std::size_t kSample = 128;  // centers that tell the direction

  struct Node {
    std::size_t begin, end, first, groups;  // its centers in ids_, and the groups they become
    std::size_t size() const { return end - begin; }
  };

  // Into two with as many groups each, and with their share of the centers. A node of one group is its own first half.
  void halve(Rows<const T> centers, const Node& node, Node* halves) {
    halves[0] = node, halves[1] = {node.end, node.end, node.first + 1, 0};
    if (node.groups == 1) return;
    const std::vector<double> direction = widest(centers, node);
    std::vector<std::pair<double, Label>> along;
    for (std::size_t e = node.begin; e < node.end; ++e) {
      const Label j = ids_[e];
      along.emplace_back(kernel_.project(centers[static_cast<std::size_t>(j)], direction.data(), centers.d), j);
    }
    const std::size_t left = node.groups / 2, count = node.size() * left / node.groups;
    std::nth_element(along.begin(), along.begin() + static_cast<std::ptrdiff_t>(count), along.end());
    for (std::size_t e = 0; e < along.size(); ++e) ids_[node.begin + e] = along[e].second;
    halves[0] = {node.begin, node.begin + count, node.first, left};
    halves[1] = {node.begin + count, node.end, node.first + left, node.groups - left};
  }

  // Nearly the direction in which some of its centers are spread most.
  std::vector<double> widest(Rows<const T> centers, const Node& node) const {
    const std::size_t step = (node.size() + kSample - 1) / kSample, d = centers.d;
    auto each = [&](auto&& f) {
      for (std::size_t e = node.begin; e < node.end; e += step) f(centers[static_cast<std::size_t>(ids_[e])]);
    };
    std::vector<double> mean(d, 0.0), origin(d, 0.0);
    double count = 0.0, most = -1.0;
    each([&](const T* c) { kernel_.accumulate(c, origin.data(), 1.0, mean.data(), d), ++count; });
    for (double& m : mean) m /= count;
    std::vector<double> direction(d, 0.0);
    const std::vector<T> middle(mean.begin(), mean.end());
    each([&](const T* c) {
      const double square = kernel_.squared_distance(c, middle.data(), d);
      if (square <= most) return;
      most = square;
      for (std::size_t i = 0; i < d; ++i) direction[i] = static_cast<double>(c[i]) - mean[i];
    });
    for (int round = 0; round < 3; ++round) {
      const double offset = std::inner_product(mean.begin(), mean.end(), direction.begin(), 0.0);
      std::vector<double> next(d, 0.0);
      each([&](const T* c) {
        kernel_.accumulate(c, mean.data(), kernel_.project(c, direction.data(), d) - offset, next.data(), d);
      });
      const double size = std::sqrt(std::inner_product(next.begin(), next.end(), next.begin(), 0.0));
      if (!(size > 0)) break;  // all are equal
      for (std::size_t i = 0; i < d; ++i) direction[i] = next[i] / size;
    }
    return direction;
  }

  // A group is complete: its names, its centers packed, its middle.
  void close(const Panels<T>& all, const Node& node) {
    const Rows<const T> centers = all.centers();
    std::sort(ids_.begin() + static_cast<std::ptrdiff_t>(node.begin),
              ids_.begin() + static_cast<std::ptrdiff_t>(node.end));
    const std::span<const Label> ids{ids_.data() + node.begin, node.size()};
    members_[node.first].pack(all, ids);
    std::vector<double> mean(centers.d, 0.0), origin(centers.d, 0.0);
    for (const Label j : ids) {
      of_[static_cast<std::size_t>(j)] = static_cast<Label>(node.first);
      kernel_.accumulate(centers[static_cast<std::size_t>(j)], origin.data(), 1.0, mean.data(), centers.d);
    }
    T* middle = middle_.data() + node.first * centers.d;
    for (std::size_t i = 0; i < centers.d; ++i) middle[i] = static_cast<T>(mean[i] / static_cast<double>(node.size()));
  }

  const Kernels<T>& kernel_ = kernels<T>();
  std::vector<Label> ids_, of_;  // the centers, group by group; the group of each
  std::vector<Panels<T>> members_;
  std::vector<T> middle_;  // of each group
  Centers<T> middles_{nullptr, 0, 0};
  Neighbors graph_;
  NeighborSearch<T> search_;
};

}  // namespace k2
