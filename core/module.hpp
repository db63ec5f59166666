// What both halves of the Python module share: arrays in and out, and the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "engines.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace k2 {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = std::optional<Vector<double>>;
using Labels = std::optional<Vector<Label>>;

template <class T>
Rows<const T> rows(const Matrix<T>& m) {
  return {m.data(), m.shape(0), m.shape(1)};
}
inline const double* pointer(const Weights& w) { return w ? w->data() : nullptr; }

inline void require(bool ok, const char* what) {
  if (!ok) throw nb::value_error(what);
}

// All of them name one of `count` things.
inline void require_names(std::span<const Label> names, std::size_t count, const char* what) {
  require(std::all_of(names.begin(), names.end(), [&](Label j) { return j >= 0 && std::size_t(j) < count; }), what);
}

// Python delivers signals between bytecodes; while we compute, ask for them. The error stays set for the caller.
inline bool interrupted() {
  nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

// Run without the GIL; what stops it is the Python error that `interrupted` left.
template <class F>
auto released(F&& f) {
  try {
    nb::gil_scoped_release nogil;
    return f();
  } catch (const Cancelled&) {
    throw nb::python_error();
  }
}

template <class V>
nb::ndarray<nb::numpy, V> give(std::vector<V> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<V>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<V>*>(p); });
  return nb::ndarray<nb::numpy, V>(kept->data(), shape, owner);
}

using OpsTuple = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, double>;
inline OpsTuple tuple(const Ops& o) { return {o.distances, o.products, o.additions, o.sorts}; }

// module_data.cpp: what is asked of data and of centers, by no engine.
template <class T>
void define_questions(nb::module_& m);

}  // namespace k2
