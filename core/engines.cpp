// The methods: which assignment and which move make each of them. And the core's one place of compilation, at -O3.
#include "engines.hpp"

#include "assign_elkan.hpp"
#include "assign_exhaustive.hpp"
#include "assign_neighborhood.hpp"
#include "assign_rough.hpp"
#include "running_mean.hpp"
#include "survey.hpp"

namespace k2 {
namespace {

template <class T, class Assign>
std::unique_ptr<AnyEngine<T>> build(const Problem<T>& p, const Survey& survey, Assign assign, int threads,
                                    Pool::Poll poll) {
  auto pool = std::make_unique<Pool>(threads, std::move(poll));
  Mean<T> move(p.x, p.weights, survey, p.centers.n);
  return std::make_unique<Engine<T, AllRows<T>, Assign, Mean<T>>>(p, AllRows<T>(), std::move(assign), std::move(move),
                                                                  std::move(pool));
}

}  // namespace

template <class T>
std::unique_ptr<AnyEngine<T>> make_lloyd(const Problem<T>& p, const Survey& survey, int threads, Pool::Poll poll) {
  return build(p, survey, Exhaustive<T>(), threads, std::move(poll));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_elkan(const Problem<T>& p, const Survey& survey, int threads, Pool::Poll poll) {
  return build(p, survey, Elkan<T>(), threads, std::move(poll));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_k2(const Problem<T>& p, const Survey& survey, std::size_t neighbors, Bounds bounds,
                                      int threads, Pool::Poll poll) {
  const std::size_t n = p.x.n, k = p.centers.n;
  if (bounds == Bounds::elkan) {
    return build(p, survey, AssignNeighborhood<T, SlotBounds<T>>(n, k, neighbors, threads), threads, std::move(poll));
  }
  return build(p, survey, AssignNeighborhood<T, RowBound<T>>(n, k, neighbors, threads), threads, std::move(poll));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_akm(const Problem<T>& p, const Survey& survey, const ForestOptions& options,
                                       int threads, Pool::Poll poll) {
  return build(p, survey, AssignKdTree<T>(options), threads, std::move(poll));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_minibatch(const Problem<T>& p, const typename RandomRows<T>::Options& options,
                                             int threads, Pool::Poll poll) {
  auto pool = std::make_unique<Pool>(threads, std::move(poll));
  return std::make_unique<Engine<T, RandomRows<T>, Exhaustive<T>, RunningMean<T>>>(
      p, RandomRows<T>(p.x, p.weights, options), Exhaustive<T>(), RunningMean<T>(p.centers), std::move(pool));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_sketched(const Problem<T>& p, const Survey& survey, const Sketch<T>* sketch,
                                            const SketchOptions& options, int threads, Pool::Poll poll) {
  auto pool = std::make_unique<Pool>(threads, std::move(poll));
  SketchSearch<T> search(p.x.n, p.centers.n, p.weights, sketch, threads);
  AssignSketched<T> assign(p.centers.n, std::move(search), options);
  Mean<T> move(p.x, p.weights, survey, p.centers.n, options.unit);
  return std::make_unique<Engine<T, Turns<T>, AssignSketched<T>, Mean<T>>>(
      p, Turns<T>(options.turns), std::move(assign), std::move(move), std::move(pool));
}

template <class T>
std::unique_ptr<AnyEngine<T>> make_rough(const Problem<T>& p, const Survey& survey, std::size_t neighbors,
                                         std::size_t turns, int threads, Pool::Poll poll) {
  auto pool = std::make_unique<Pool>(threads, std::move(poll));
  const std::size_t k = p.centers.n;
  AssignRough<T> assign(p.x, p.weights, std::min(neighbors, k), turns, *pool);
  return std::make_unique<Engine<T, Turns<T>, AssignRough<T>, Mean<T>>>(
      p, Turns<T>(turns), std::move(assign), Mean<T>(p.x, p.weights, survey, k), std::move(pool));
}

K2_COMPILED(, float)
K2_COMPILED(, double)

}  // namespace k2
