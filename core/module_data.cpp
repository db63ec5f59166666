// The Python module's other half: starts, sketches, and what can be asked of given centers.
#include "module.hpp"

namespace k2 {

template <class T>
void define_questions(nb::module_& m) {
  nb::class_<Sketch<T>>(m, (std::string("Sketch") + (sizeof(T) == 4 ? "Float" : "Double")).c_str(),
                        "Sketches of the rows of a matrix.")
      .def_prop_ro("caught", &Sketch<T>::caught, "The part of the data's energy that lies along the directions.")
      .def(
          "rows",
          [](nb::handle self) {
            const auto r = nb::cast<const Sketch<T>&>(self).rows();
            return nb::ndarray<nb::numpy, const T, nb::ndim<2>>(r.data, {r.n, r.d}, self);
          },
          "The sketches, one a row; not a copy.")
      .def(
          "of",
          [](const Sketch<T>& like, Matrix<T> x, int threads) {
            require(x.shape(1) == like.d(), "x and the rows of the sketches differ in columns");
            Pool pool(threads, interrupted);
            return released([&] { return std::make_unique<Sketch<T>>(like, rows(x), pool); });
          },
          "x"_a.noconvert(), "threads"_a, "Sketches of other rows along the same directions.");
  m.def(
      "sketch",
      [](Matrix<T> x, const Survey& s, std::uint64_t seed, int threads, std::size_t used_for) {
        Pool pool(threads, interrupted);
        return released([&] { return std::make_unique<Sketch<T>>(rows(x), s, seed, pool, used_for); });
      },
      "x"_a.noconvert(), "survey"_a, "seed"_a, "threads"_a, "used_for"_a = 0);
  m.def(
      "means",
      [](Matrix<T> x, Weights w, Vector<Label> labels, std::size_t k, int threads) {
        Pool pool(threads, interrupted);
        return give(released([&] { return means_of(rows(x), pointer(w), {labels.data(), labels.shape(0)}, k, pool); }),
                    {k, x.shape(1)});
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "labels"_a.noconvert(), "k"_a, "threads"_a);
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
      [](Matrix<T> x, Weights w, const Survey& survey, std::size_t k, int iterations, std::uint64_t seed, int threads,
         bool fast) {
        Pool pool(threads, interrupted);
        Division<T> g =
            released([&] { return GreedyDivision<T>(rows(x), pointer(w), seed, iterations)(k, survey, pool, fast); });
        return std::make_tuple(give(std::move(g.centers), {k, x.shape(1)}), give(std::move(g.labels), {x.shape(0)}),
                               tuple(g.ops));
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "survey"_a, "k"_a, "iterations"_a, "seed"_a, "threads"_a,
      "fast"_a = false);

  m.def(
      "assign_capped",
      [](Matrix<T> x, Weights w, Matrix<T> centers, Vector<Label> labels, std::size_t cap, double step, int threads) {
        const std::size_t n = x.shape(0), k = centers.shape(0);
        require(x.shape(1) == centers.shape(1) && n == labels.shape(0), "shapes of x, centers, labels differ");
        require(cap >= 1 && (n + cap - 1) / cap <= k, "there is no room for all rows");
        require(step > 0, "step is not above zero");
        std::vector<Label> out(labels.data(), labels.data() + n);
        require_names(out, k, "labels has centers that are not there");
        Pool pool(threads, interrupted);
        const Ops ops = released([&] {
          AssignCapped<T> assign(rows(x), pointer(w), rows(centers), cap, step, pool);
          assign(out, pool);
          return assign.ops();
        });
        return std::make_tuple(give(std::move(out), {n}), tuple(ops));
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "centers"_a.noconvert(), "labels"_a.noconvert(), "cap"_a,
      "step"_a, "threads"_a, "At most `cap` rows to each center, at nearly the least cost; given a center near each.");

  m.def(
      "nearest",
      [](Matrix<T> x, Matrix<T> centers, std::optional<Vector<T>> shift, int threads, const Sketch<T>* sketch) {
        require(x.shape(1) == centers.shape(1), "x and centers differ in columns");
        require(!sketch || sketch->rows().n == x.shape(0), "the sketches are of other rows");
        Pool pool(threads, interrupted);
        const T* from = shift ? shift->data() : nullptr;
        return give(released([&] { return nearest_centers(rows(x), rows(centers), from, sketch, pool); }),
                    {x.shape(0)});
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "shift"_a.none().noconvert(), "threads"_a,
      "sketch"_a.none() = nb::none());

  m.def(
      "energy",
      [](Matrix<T> x, Weights w, Matrix<T> centers, Vector<Label> labels, int threads) {
        require(x.shape(1) == centers.shape(1) && x.shape(0) == labels.shape(0), "shapes of x, centers, labels differ");
        Pool pool(threads, interrupted);
        return released([&] { return energy_of(rows(x), pointer(w), rows(centers), labels.data(), pool); });
      },
      "x"_a.noconvert(), "weights"_a.none().noconvert(), "centers"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);

  m.def(
      "squares",
      [](Matrix<T> x, Matrix<T> centers, Vector<Label> labels, int threads) {
        require(x.shape(1) == centers.shape(1) && x.shape(0) == labels.shape(0), "shapes of x, centers, labels differ");
        Pool pool(threads, interrupted);
        return give(released([&] { return squares_of(rows(x), rows(centers), labels.data(), pool); }), {x.shape(0)});
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);

  m.def(
      "several",
      [](Matrix<T> x, Matrix<T> centers, const Sketch<T>* sketch, std::size_t count, int threads) {
        require(x.shape(1) == centers.shape(1), "x and centers differ in columns");
        Pool pool(threads, interrupted);
        const std::size_t m = std::min<std::size_t>(count, centers.shape(0)), n = x.shape(0);
        Several<T> s = released([&] { return SeveralSearch<T>(rows(centers), sketch, m, pool)(rows(x), pool); });
        return std::make_pair(give(std::move(s.ids), {n, m}), give(std::move(s.distances), {n, m}));
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "sketch"_a.none(), "count"_a, "threads"_a,
      "The nearest centers of each row, and how far they are.");

  m.def(
      "several_in_groups",
      [](Matrix<T> x, Matrix<T> centers, Matrix<T> middles, Vector<Label> group_of, const Sketch<T>* sketch,
         std::size_t count, std::size_t probes, int threads) {
        require(x.shape(1) == centers.shape(1) && x.shape(1) == middles.shape(1), "x and centers differ in columns");
        require(centers.shape(0) == group_of.shape(0), "group_of and centers differ in rows");
        Pool pool(threads, interrupted);
        const std::size_t m = std::min<std::size_t>(count, centers.shape(0)), n = x.shape(0);
        const std::span<const Label> groups(group_of.data(), group_of.shape(0));
        require_names(groups, middles.shape(0), "group_of has groups that are not there");
        Several<T> s = released([&] {
          return GroupedSearch<T>(rows(centers), rows(middles), groups, sketch, m, pool)(rows(x), probes, pool);
        });
        return std::make_pair(give(std::move(s.ids), {n, m}), give(std::move(s.distances), {n, m}));
      },
      "x"_a.noconvert(), "centers"_a.noconvert(), "middles"_a.noconvert(), "group_of"_a.noconvert(), "sketch"_a.none(),
      "count"_a, "probes"_a, "threads"_a, "The nearest of the centers in the groups nearest to each row.");

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

template void define_questions<float>(nb::module_&);
template void define_questions<double>(nb::module_&);

}  // namespace k2
