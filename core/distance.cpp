// Which variant of the kernels this CPU runs, decided once.
#include "distance.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "dispatch.hpp"
#include "variants.hpp"

namespace k2 {

std::vector<Variant> variants() {
#if K2_X86
  // Feature by feature: not every compiler that knows -march=x86-64-v3 can ask for the level by name.
  __builtin_cpu_init();
  const bool v2 =
      __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return {{"v4", v4, exact_v4, tiles_v4}, {"v3", v3, exact_v3, tiles_v3}, {"v2", v2, exact_v2, tiles_v2}};
#else
  return {{"base", true, exact_base, tiles_base}};
#endif
}

namespace {

struct Tables {
  Kernels<float> single{};
  Kernels<double> twice{};

  Tables() {
    const char* wanted = std::getenv("K2MEANS_SIMD");
    if (wanted && !*wanted) wanted = nullptr;
    for (const Variant& v : variants()) {
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
