// All that module.cpp calls, compiled in engines.cpp for float and double.
#pragma once

#include <memory>

#include "assign_capped.hpp"
#include "assign_kdtree.hpp"
#include "assign_sketched.hpp"
#include "engine.hpp"
#include "grouped.hpp"
#include "measure.hpp"
#include "seeding.hpp"
#include "several.hpp"

namespace k2 {

enum class Bounds { elkan, hamerly };  // one for each row and neighbor, as the paper; one for each row

template <class T>
std::unique_ptr<AnyEngine<T>> make_lloyd(const Problem<T>&, const Survey&, int threads, Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_elkan(const Problem<T>&, const Survey&, int threads, Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_k2(const Problem<T>&, const Survey&, std::size_t neighbors, Bounds, int threads,
                                      Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_akm(const Problem<T>&, const Survey&, const ForestOptions&, int threads, Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_sketched(const Problem<T>&, const Survey&, const Sketch<T>*, const SketchOptions&,
                                            int threads, Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_rough(const Problem<T>&, const Survey&, std::size_t neighbors, std::size_t turns,
                                         int threads, Pool::Poll);
template <class T>
std::unique_ptr<AnyEngine<T>> make_minibatch(const Problem<T>&, const typename RandomRows<T>::Options&, int threads,
                                             Pool::Poll);

#define K2_COMPILED(how, T)                                                                                            \
  how template std::unique_ptr<AnyEngine<T>> make_lloyd<T>(const Problem<T>&, const Survey&, int, Pool::Poll);         \
  how template std::unique_ptr<AnyEngine<T>> make_elkan<T>(const Problem<T>&, const Survey&, int, Pool::Poll);         \
  how template std::unique_ptr<AnyEngine<T>> make_k2<T>(const Problem<T>&, const Survey&, std::size_t, Bounds, int,    \
                                                        Pool::Poll);                                                   \
  how template std::unique_ptr<AnyEngine<T>> make_akm<T>(const Problem<T>&, const Survey&, const ForestOptions&, int,  \
                                                         Pool::Poll);                                                  \
  how template std::unique_ptr<AnyEngine<T>> make_minibatch<T>(const Problem<T>&, const RandomRows<T>::Options&, int,  \
                                                               Pool::Poll);                                            \
  how template std::unique_ptr<AnyEngine<T>> make_sketched<T>(const Problem<T>&, const Survey&, const Sketch<T>*,      \
                                                              const SketchOptions&, int, Pool::Poll);                  \
  how template std::unique_ptr<AnyEngine<T>> make_rough<T>(const Problem<T>&, const Survey&, std::size_t, std::size_t, \
                                                           int, Pool::Poll);                                           \
  how template class AssignCapped<T>;                                                                                  \
  how template class Sketch<T>;                                                                                        \
  how template class SeveralSearch<T>;                                                                                 \
  how template class GroupedSearch<T>;                                                                                 \
  how template std::vector<double> squares_of<T>(Rows<const T>, Rows<const T>, const Label*, Pool&);                   \
  how template std::vector<T> means_of<T>(Rows<const T>, const double*, std::span<const Label>, std::size_t, Pool&);   \
  how template Survey survey_rows<T>(Rows<const T>, const double*, Pool&);                                             \
  how template Chosen plus_plus<T>(Rows<const T>, const double*, std::size_t, int, std::uint64_t, Pool&);              \
  how template class GreedyDivision<T>;                                                                                \
  how template std::vector<Label> nearest_centers<T>(Rows<const T>, Rows<const T>, const T*, const Sketch<T>*, Pool&); \
  how template double energy_of<T>(Rows<const T>, const double*, Rows<const T>, const Label*, Pool&);                  \
  how template std::vector<T> all_distances<T>(Rows<const T>, Rows<const T>, Pool&);
K2_COMPILED(extern, float)
K2_COMPILED(extern, double)

}  // namespace k2
