#define K2_VARIANT v2
#include "exact_impl.hpp"
