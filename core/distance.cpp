// Which variant of the kernels this CPU runs, decided once.
#include "distance.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "variants.hpp"

namespace k2 {
namespace {

using Filler = void (*)(Kernels<float>&, Kernels<double>&);
struct Variant {
  const char* name;
  bool runs;
  Filler exact, tiles;
};

struct Tables {
  Kernels<float> single{};
  Kernels<double> twice{};

  Tables() {
#if K2_X86
    __builtin_cpu_init();
    const Variant variants[] = {
        {"v4", __builtin_cpu_supports("x86-64-v4") != 0, exact_v4, tiles_v4},
        {"v3", __builtin_cpu_supports("x86-64-v3") != 0, exact_v3, tiles_v3},
        {"v2", __builtin_cpu_supports("x86-64-v2") != 0, exact_v2, tiles_v2},
    };
#else
    const Variant variants[] = {{"base", true, exact_base, tiles_base}};
#endif
    const char* wanted = std::getenv("K2MEANS_SIMD");
    if (wanted && !*wanted) wanted = nullptr;
    for (const Variant& v : variants) {
      if (!v.runs || (wanted && std::strcmp(wanted, v.name) != 0)) continue;
      v.exact(single, twice);
      v.tiles(single, twice);
      single.name = twice.name = v.name;
      return;
    }
    if (wanted) throw std::runtime_error(std::string("K2MEANS_SIMD=") + wanted + ": this CPU has no such variant");
    throw std::runtime_error("k2means needs a CPU of level x86-64-v2 or newer (SSE4.2)");
  }
};

const Tables& tables() {
  static const Tables chosen;
  return chosen;
}

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
  return tables().single;
}
template <>
const Kernels<double>& kernels<double>() {
  return tables().twice;
}

}  // namespace k2
