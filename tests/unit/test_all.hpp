// `make test-all` makes more rounds of what is drawn or left to threads.
#pragma once

#include <cstdlib>

namespace homing {

template <class T> T test_rounds(T usual, T all) { return std::getenv("TEST_ALL") != nullptr ? all : usual; }

} // namespace homing
