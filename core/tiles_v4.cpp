#define K2_VARIANT v4
#include "tiles_impl.hpp"
