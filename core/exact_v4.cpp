#define K2_VARIANT v4
#include "exact_impl.hpp"
