// Memory for many numbers that are read here and there: on large pages, where the system has them and is asked. With
// small ones it is not the numbers that are waited for, but the places where they are.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace k2 {

template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (is_small(n)) return std::allocator<T>().allocate(n);
    const std::size_t filled = n * sizeof(T) / kPage * kPage;  // by large pages; of one more, much might stay empty
    void* p = std::aligned_alloc(kPage, filled + kPage);
    if (!p) throw std::bad_alloc();
#if defined(__linux__)
    madvise(p, filled, MADV_HUGEPAGE);  // a wish: what it answers does not matter
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { is_small(n) ? std::allocator<T>().deallocate(p, n) : std::free(p); }
  // What is not given a value has none: clearing it first would be a pass over all of it, by one thread.
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  bool operator==(const LargeAllocator&) const { return true; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21;
  static bool is_small(std::size_t n) { return n * sizeof(T) < 2 * kPage; }
};

template <class T>
using Large = std::vector<T, LargeAllocator<T>>;

}  // namespace k2
