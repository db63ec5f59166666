#define K2_VARIANT base
#include "exact_impl.hpp"
