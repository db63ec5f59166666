// Runs every test, or those whose names contain the argument.
#include <cstring>
#include <exception>

#include "check.hpp"

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const check::Test& test : check::tests()) {
    if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
    check::failures() = 0;
    try {
      test.run();
    } catch (const std::exception& e) {
      check::that(false, e.what(), test.name, 0);
    }
    check::failures() ? ++failed : ++passed;
    if (check::failures()) std::printf("FAILED %s (%d checks)\n", test.name, check::failures());
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
