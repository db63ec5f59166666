#define K2_VARIANT v3
#include "tiles_impl.hpp"
