#define K2_VARIANT v2
#include "tiles_impl.hpp"
