// The variants of the kernels that were compiled, and which of them this CPU runs.
#pragma once

#include <vector>

#include "distance.hpp"

namespace k2 {

struct Variant {
  const char* name;
  bool runs;
  void (*exact)(Kernels<float>&, Kernels<double>&);
  void (*tiles)(Kernels<float>&, Kernels<double>&);
};

std::vector<Variant> variants();  // best first

}  // namespace k2
