#define K2_VARIANT v3
#include "exact_impl.hpp"
