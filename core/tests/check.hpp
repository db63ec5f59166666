// A test is a named block that checks; main() runs them all and counts.
#pragma once

#include <cstdio>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
inline int& failures() {
  static int count = 0;
  return count;
}
struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};
inline void that(bool ok, const char* what, const char* file, int line) {
  if (ok) return;
  if (++failures() <= 10) std::printf("  %s:%d: not true: %s\n", file, line, what);
}

}  // namespace check

#define TEST(name)                                         \
  static void name();                                      \
  static const check::Register name##_listed(#name, name); \
  static void name()
#define CHECK(...) check::that(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
