// The Python module: check, release the GIL, call. Nothing is decided here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <optional>
#include <string>
#include <tuple>

#include "engines.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace k2 {
namespace {

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
const double* pointer(const Weights& w) { return w ? w->data() : nullptr; }

void require(bool ok, const char* what) {
  if (!ok) throw nb::value_error(what);
}

// Python delivers signals between bytecodes; while we compute, ask for them. The error stays set for the caller.
bool interrupted() {
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
OpsTuple tuple(const Ops& o) { return {o.distances, o.products, o.additions, o.sorts}; }

// An engine and the arrays it reads.
template <class T>
struct Bound {
  Matrix<T> x;
  Weights weights;
  std::unique_ptr<AnyEngine<T>> engine;

  template <class Make>
  Bound(Matrix<T> x_, Weights weights_, const Matrix<T>& centers, const Labels& labels, Make&& make)
      : x(std::move(x_)), weights(std::move(weights_)) {
    require(centers.shape(1) == x.shape(1), "centers and x differ in columns");
    require(!weights || weights->shape(0) == x.shape(0), "weights and x differ in length");
    require(!labels || labels->shape(0) == x.shape(0), "labels and x differ in length");
    require(centers.shape(0) >= 1 && x.shape(0) >= 1, "no rows or no centers");
    if (labels) {
      for (std::size_t i = 0; i < labels->shape(0); ++i) {
        const Label l = labels->data()[i];
        require(l >= 0 && static_cast<std::size_t>(l) < centers.shape(0), "a label is not the index of a center");
      }
    }
    const Problem<T> problem{rows(x), pointer(weights), rows(centers), labels ? labels->data() : nullptr};
    engine = released([&] { return make(problem); });
  }
};

std::tuple<std::int64_t, double, OpsTuple> tuple(const Step& s) { return {s.moved, s.shift, tuple(s.ops)}; }

template <class T>
void define(nb::module_& m, const char* name) {
  using B = Bound<T>;
  nb::class_<B>(m, name, "A method bound to its data.")
      .def(
          "step", [](B& b) { return tuple(released([&] { return b.engine->step(); })); },
          "One iteration: (moved, shift, ops).")
      .def(
          "settle", [](B& b) { return tuple(released([&] { return b.engine->settle(); })); },
          "One more assignment, the centers stay: (moved, shift, ops).")
      .def(
          "energy", [](B& b) { return released([&] { return b.engine->energy(); }); },
          "Energy of the last assignment with the centers after it, from the running sums.")
      .def("labels",
           [](const B& b) {
             const auto l = b.engine->labels();
             return give(std::vector<Label>(l.begin(), l.end()), {l.size()});
           })
      .def("centers", [](const B& b) {
        const Centers<T>& c = b.engine->centers();
        return give(c.value, {c.k, c.d});
      });

  m.def(
      "lloyd",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, int threads) {
        return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_lloyd(p, s, threads, interrupted); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "centers"_a.noconvert(),
      "labels"_a.none().noconvert(), "threads"_a);
  m.def(
      "elkan",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, int threads) {
        return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_elkan(p, s, threads, interrupted); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "centers"_a.noconvert(),
      "labels"_a.none().noconvert(), "threads"_a);
  m.def(
      "k2",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, std::size_t neighbors,
         const std::string& bounds, int threads) {
        require(neighbors >= 1, "neighbors must be at least 1");
        require(bounds == "elkan" || bounds == "hamerly", "bounds must be 'elkan' or 'hamerly'");
        const Bounds kind = bounds == "elkan" ? Bounds::elkan : Bounds::hamerly;
        return std::make_unique<B>(x, w, c, l,
                                   [&](auto& p) { return make_k2(p, s, neighbors, kind, threads, interrupted); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "centers"_a.noconvert(),
      "labels"_a.none().noconvert(), "neighbors"_a, "bounds"_a, "threads"_a);

  m.def(
      "akm",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, std::size_t checks, std::size_t trees,
         bool keep_previous, std::uint64_t seed, int threads) {
        require(checks >= 1 && trees >= 1, "checks and trees must be at least 1");
        const ForestOptions options{checks, trees, keep_previous, seed};
        return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_akm(p, s, options, threads, interrupted); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "centers"_a.noconvert(),
      "labels"_a.none().noconvert(), "checks"_a, "trees"_a, "keep_previous"_a, "seed"_a, "threads"_a);
  m.def(
      "minibatch",
      [](Matrix<T> x, Weights w, Matrix<T> c, Labels l, std::size_t size, std::size_t batches, std::uint64_t seed,
         int threads) {
        require(size >= 1 && batches >= 1, "a batch has at least 1 row, an iteration at least 1 batch");
        const typename RandomRows<T>::Options options{size, batches, seed};
        return std::make_unique<B>(x, w, c, l,
                                   [&](auto& p) { return make_minibatch(p, options, threads, interrupted); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "centers"_a.noconvert(), "labels"_a.none().noconvert(),
      "size"_a, "batches"_a, "seed"_a, "threads"_a);

  m.def(
      "survey",
      [](Matrix<T> x, Weights w, int threads) {
        require(x.shape(0) >= 1, "no rows");
        Pool pool(threads, interrupted);
        return released([&] { return survey_rows(rows(x), pointer(w), pool); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "threads"_a);

  m.def(
      "plus_plus",
      [](Matrix<T> x, Weights w, std::size_t k, int trials, std::uint64_t seed, int threads) {
        Pool pool(threads, interrupted);
        Chosen c = released([&] { return plus_plus(rows(x), pointer(w), k, trials, seed, pool); });
        const std::size_t count = c.rows.size();
        return std::make_tuple(give(std::move(c.rows), {count}), tuple(c.ops));
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "k"_a, "trials"_a, "seed"_a, "threads"_a);

  m.def(
      "gdi",
      [](Matrix<T> x, Weights w, const Survey& survey, std::size_t k, int iterations, std::uint64_t seed, int threads) {
        Pool pool(threads, interrupted);
        Division<T> g =
            released([&] { return GreedyDivision<T>(rows(x), pointer(w), seed, iterations)(k, survey, pool); });
        return std::make_tuple(give(std::move(g.centers), {k, x.shape(1)}), give(std::move(g.labels), {x.shape(0)}),
                               tuple(g.ops));
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "k"_a, "iterations"_a, "seed"_a, "threads"_a);

  m.def(
      "nearest",
      [](Matrix<T> x, Matrix<T> centers, std::optional<Vector<T>> shift, int threads) {
        require(x.shape(1) == centers.shape(1), "x and centers differ in columns");
        Pool pool(threads, interrupted);
        return give(
            released([&] { return nearest_centers(rows(x), rows(centers), shift ? shift->data() : nullptr, pool); }),
            {x.shape(0)});
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "shift"_a.none().noconvert(), "threads"_a);

  m.def(
      "energy",
      [](Matrix<T> x, Weights w, Matrix<T> centers, Vector<Label> labels, int threads) {
        require(x.shape(1) == centers.shape(1) && x.shape(0) == labels.shape(0), "shapes of x, centers, labels differ");
        Pool pool(threads, interrupted);
        return released([&] { return energy_of(rows(x), pointer(w), rows(centers), labels.data(), pool); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "centers"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);

  m.def(
      "distances",
      [](Matrix<T> x, Matrix<T> centers, int threads) {
        require(x.shape(1) == centers.shape(1), "x and centers differ in columns");
        Pool pool(threads, interrupted);
        return give(released([&] { return all_distances(rows(x), rows(centers), pool); }),
                    {x.shape(0), centers.shape(0)});
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "threads"_a);
}

}  // namespace
}  // namespace k2

NB_MODULE(_core, m) {
  using k2::Survey;
  m.doc() = "The kernels of k2means.";
  auto copy = [](const std::vector<double>& v) { return k2::give(std::vector<double>(v), {v.size()}); };
  nb::class_<Survey>(m, "Survey", "What one look at the data tells.")
      .def_prop_ro("bad", [](const Survey& s) { return std::make_pair(s.bad_row, s.bad_column); })
      .def_prop_ro(
          "mean", [copy](const Survey& s) { return copy(s.mean); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "low", [copy](const Survey& s) { return copy(s.low); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "high", [copy](const Survey& s) { return copy(s.high); }, nb::rv_policy::automatic)
      .def_ro("total", &Survey::total)
      .def_ro("weight", &Survey::weight);
  m.attr("simd") = k2::kernels<float>().name;
  k2::define<float>(m, "EngineFloat");
  k2::define<double>(m, "EngineDouble");
}
