#define K2_VARIANT base
#include "tiles_impl.hpp"
