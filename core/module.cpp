// The Python module: check, release the GIL, call. Nothing is decided here.
#include "module.hpp"

namespace k2 {
namespace {

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

// A function that makes an engine: what all of them take, and what only this one does.
template <class F, class... Own>
void method(nb::module_& m, const char* name, F&& make, const Own&... own) {
  m.def(name, make, "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "centers"_a.noconvert(),
        "labels"_a.none().noconvert(), own..., "threads"_a);
}

template <class T>
void define(nb::module_& m, const char* name) {
  using B = Bound<T>;
  nb::class_<B>(m, name, "A method bound to its data.")
      .def(
          "step", [](B& b) { return tuple(released([&] { return b.engine->step(); })); },
          "One iteration: (moved, shift, ops).")
      .def(
          "settle", [](B& b, bool afresh) { return tuple(released([&] { return b.engine->settle(afresh); })); },
          "afresh"_a = false, "One more assignment, the centers stay: (moved, shift, ops).")
      .def(
          "energy", [](B& b) { return released([&] { return b.engine->energy(); }); },
          "Energy of the last assignment with the centers after it, from the running sums.")
      .def(
          "certify", [](B& b) { return released([&] { return b.engine->certify(); }); },
          "How many rows certainly have the nearest of all centers.")
      .def(
          "swap",
          [](B& b, std::uint64_t seed) {
            Ops ops;
            const double saved = released([&] { return b.engine->swap(seed, ops); });
            return std::make_pair(saved, tuple(ops));
          },
          "seed"_a, "Swaps of clusters between iterations of `rough`: (share of the energy saved, ops).")
      .def(
          "mode", [](const B& b) { return b.engine->mode(); }, "Where it is, if it has several modes.")
      .def(
          "known",
          [](const B& b) {
            std::vector<Label> known = b.engine->known();
            const std::size_t size = known.size();
            return give(std::move(known), {size});
          },
          "The neighbors of the centers, or the lists of the rows, that the next step begins with; or none.")
      .def("labels",
           [](const B& b) {
             const auto l = b.engine->labels();
             return give(std::vector<Label>(l.begin(), l.end()), {l.size()});
           })
      .def("centers", [](const B& b) {
        const Centers<T>& c = b.engine->centers();
        return give(c.value, {c.k, c.d});
      });

  method(m, "lloyd", [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, int threads) {
    return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_lloyd(p, s, threads, interrupted); });
  });
  method(m, "elkan", [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, int threads) {
    return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_elkan(p, s, threads, interrupted); });
  });
  method(
      m, "k2",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, std::size_t neighbors,
         const std::string& bounds, int threads) {
        require(neighbors >= 1, "neighbors must be at least 1");
        require(bounds == "elkan" || bounds == "hamerly", "bounds must be 'elkan' or 'hamerly'");
        const Bounds kind = bounds == "elkan" ? Bounds::elkan : Bounds::hamerly;
        return std::make_unique<B>(x, w, c, l,
                                   [&](auto& p) { return make_k2(p, s, neighbors, kind, threads, interrupted); });
      },
      "neighbors"_a, "bounds"_a);

  method(
      m, "sketched",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, const Sketch<T>* sketch, std::size_t neighbors,
         std::size_t turns, bool hartigan, bool swaps, bool exact, bool unit, bool lists, double tol, int mode,
         Labels known, int threads) {
        require(neighbors >= 1 && turns >= 1, "neighbors and turns must be at least 1");
        const std::span<const Label> before =
            known ? std::span<const Label>(known->data(), known->shape(0)) : std::span<const Label>();
        const std::size_t n = x.shape(0), k = c.shape(0), size = OwnLists<T>::saved_size(n, k, turns);
        require(before.empty() || before.size() == (lists ? size : k * neighbors), "what was known is of other data");
        require_names(lists && !before.empty() ? before.first(n * std::min(OwnLists<T>::kLength, k)) : before, k,
                      "what was known names centers that are not there");
        const SketchOptions options{neighbors, turns, hartigan, swaps, exact, unit, lists};
        return std::make_unique<B>(x, w, c, l, [&](auto p) {
          p.tol = tol, p.mode = mode, p.known = before;
          return make_sketched(p, s, sketch, options, threads, interrupted);
        });
      },
      "sketch"_a.none(), "neighbors"_a, "turns"_a, "hartigan"_a, "swaps"_a, "exact"_a, "unit"_a, "lists"_a, "tol"_a,
      "mode"_a, "known"_a.none().noconvert(), nb::keep_alive<0, 6>());

  method(
      m, "rough",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, std::size_t neighbors, std::size_t turns,
         int threads) {
        require(neighbors >= 1 && turns >= 1, "neighbors and turns must be at least 1");
        require(l.has_value(), "rough iterations need labels");
        return std::make_unique<B>(x, w, c, l,
                                   [&](auto& p) { return make_rough(p, s, neighbors, turns, threads, interrupted); });
      },
      "neighbors"_a, "turns"_a);

  method(
      m, "akm",
      [](Matrix<T> x, Weights w, const Survey& s, Matrix<T> c, Labels l, std::size_t checks, std::size_t trees,
         bool keep_previous, std::uint64_t seed, int threads) {
        require(checks >= 1 && trees >= 1, "checks and trees must be at least 1");
        const ForestOptions options{checks, trees, keep_previous, seed};
        return std::make_unique<B>(x, w, c, l, [&](auto& p) { return make_akm(p, s, options, threads, interrupted); });
      },
      "checks"_a, "trees"_a, "keep_previous"_a, "seed"_a);
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
  define_questions<T>(m);
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
