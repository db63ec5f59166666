// One function per CPU variant and kind of kernel, each filling its part of the table.
#pragma once

#include "distance.hpp"

#define K2_JOIN_(a, b) a##_##b
#define K2_JOIN(a, b) K2_JOIN_(a, b)
#define K2_VARIANT_NAME(kind) K2_JOIN(kind, K2_VARIANT)

namespace k2 {
#define K2_DECLARE(variant)                                \
  void exact_##variant(Kernels<float>&, Kernels<double>&); \
  void tiles_##variant(Kernels<float>&, Kernels<double>&);
#if K2_X86
K2_DECLARE(v2)
K2_DECLARE(v3)
K2_DECLARE(v4)
#else
K2_DECLARE(base)
#endif
#undef K2_DECLARE
}  // namespace k2
