// Many rows told apart by a tree of hyperplanes: the leaf of each, and what is known of every leaf. The rows are read
// only once, and so what costs most of a cut, memory, is paid once for all of the tree's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "distance.hpp"
#include "half.hpp"
#include "large.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace k2 {

// Rows not beyond `at` along the direction are on side 0, the others on side 1. On each side comes another plane, or
// there is a leaf.
struct Plane {
  static constexpr std::size_t kLeaf = 256;  // from here on it is the name of a leaf

  std::vector<double> direction;
  double at = 0.0;
  std::size_t next[2] = {kLeaf, kLeaf + 1};
};

template <class T>
class PlaneTree {
 public:
  static constexpr std::size_t kMost = 31;  // planes: so many are multiplied with a row about as fast as a few

  PlaneTree(Rows<const T> x, const double* weights) : x_(x), weights_(weights) {}

  // Sums are about `origin`.
  void operator()(const std::vector<Plane>& planes, std::span<const Row> rows, const std::vector<double>& origin,
                  Pool& pool) {
    // The same for any number of threads, and not so many that their sums would take much memory.
    const std::size_t chunk = std::max<std::size_t>(2048, rows.size() / 64 + 1);
    const std::size_t size = (planes.size() + 1) * stride();
    leaf_.resize(rows.size());
    sums_.assign((rows.size() + chunk - 1) / chunk * size, 0.0);
    if (planes.size() > 1) pack(planes, pool);
    pool.for_chunks(rows.size(), chunk, [&](std::size_t a, std::size_t b, int) {
      const auto part = rows.subspan(a, b - a);
      Label* leaf = leaf_.data() + a;
      planes.size() > 1 ? walk(planes.size(), part, leaf) : look(planes[0], part, leaf);
      kernel_.add_up({x_.data, x_.d, part.data(), weights_, part.size(), leaf}, origin.data(),
                     sums_.data() + a / chunk * size);
    });
    for (std::size_t i = size; i < sums_.size(); ++i) sums_[i % size] += sums_[i];
    sums_.resize(size);
  }

  std::span<const Label> leaf() const { return leaf_; }  // of each row

  // The rows of all leaves [first, last) together.
  Half half(std::size_t first, std::size_t last, const std::vector<double>& origin) const {
    Half out;
    out.mean.assign(x_.d, 0.0);
    double spread = 0.0, square = 0.0;
    for (std::size_t l = first; l < last; ++l) {
      const double* sum = sums_.data() + l * stride();
      for (std::size_t c = 0; c < x_.d; ++c) out.mean[c] += sum[c];
      spread += (sum[x_.d] + sum[x_.d + 1]) + (sum[x_.d + 2] + sum[x_.d + 3]);
      out.weight += sum[x_.d + 4];
    }
    for (std::size_t c = 0; c < x_.d; ++c) {
      square += out.mean[c] * out.mean[c];
      out.mean[c] = origin[c] + out.mean[c] / out.weight;
    }
    out.energy = std::max(0.0, spread - square / out.weight);
    return out;
  }

 private:
  static constexpr std::size_t kBlock = 48;             // rows multiplied at once
  static constexpr std::size_t kNodes = 2 * kMost + 2;  // planes and leaves, and it is whole panels

  std::size_t stride() const { return x_.d + 5; }  // the sums of a leaf, see Kernels::add_up

  void pack(const std::vector<Plane>& planes, Pool& pool) {
    directions_.clear();
    for (const Plane& p : planes) directions_.insert(directions_.end(), p.direction.begin(), p.direction.end());
    panels_.pack({directions_.data(), planes.size(), x_.d}, nullptr, pool);
    // The nodes: the planes, and the leaves, which lead to themselves.
    std::size_t level[kNodes] = {};
    levels_ = 0;
    for (std::size_t p = 0; p < kNodes; ++p) {
      border_[p] = p < planes.size() ? static_cast<T>(planes[p].at) : T(0);
      for (std::size_t side = 0; side < 2; ++side) {
        const std::size_t next = p < planes.size() ? planes[p].next[side] : p;
        const std::size_t node = next < Plane::kLeaf ? next : next - Plane::kLeaf + planes.size();
        next_[p][side] = static_cast<std::uint8_t>(node);
        if (p >= planes.size()) continue;
        level[node] = level[p] + 1;  // planes lead to later ones
        levels_ = std::max(levels_, level[node]);
      }
    }
  }

  // One plane: what is near it is told apart in double.
  void look(const Plane& plane, std::span<const Row> rows, Label* leaf) const {
    const std::size_t ahead = rows_ahead<T>(x_.d);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i + ahead < rows.size()) prefetch_row(x_[rows[i + ahead]], x_.d);
      leaf[i] = kernel_.project(x_[rows[i]], plane.direction.data(), x_.d) > plane.at;
    }
  }

  // Products with all planes, and then from side to side, all rows of a block at once: none waits for another's memory,
  // and there is no jump to guess. Nothing is fused: the same leaves on every CPU.
  void walk(std::size_t planes, std::span<const Row> rows, Label* leaf) const {
    std::vector<T> dots(kBlock * kNodes);
    for (std::size_t first = 0; first < rows.size(); first += kBlock) {
      const auto block = rows.subspan(first, std::min(kBlock, rows.size() - first));
      const T* row[kBlock];
      for (std::size_t r = 0; r < block.size(); ++r) prefetch_row(row[r] = x_[block[r]], x_.d);
      panels_.heads(row, block.size(), dots.data(), kNodes);
      std::uint8_t at[kBlock] = {};  // the node where each row is
      for (std::size_t level = 0; level < levels_; ++level) {
        for (std::size_t r = 0; r < block.size(); ++r) {
          const std::size_t p = at[r];
          at[r] = next_[p][dots[r * kNodes + p] > border_[p]];
        }
      }
      for (std::size_t r = 0; r < block.size(); ++r) leaf[first + r] = static_cast<Label>(at[r] - planes);
    }
  }

  const Kernels<T>& kernel_ = kernels<T>();
  Rows<const T> x_;
  const double* weights_;
  std::vector<T> directions_;
  Panels<T> panels_;
  T border_[kNodes];
  std::uint8_t next_[kNodes][2];  // the node on each side of a plane
  std::size_t levels_ = 0;        // planes on the longest way to a leaf
  Large<Label> leaf_;
  std::vector<double> sums_;  // of each leaf
};

}  // namespace k2
