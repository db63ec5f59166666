// The pool: every item once, sums in order, exceptions and cancellation come through, and a fork does not break it.
#include "parallel.hpp"

#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "check.hpp"

using k2::Pool;

TEST(every_item_is_visited_once_for_any_size_and_grain) {
  for (const int threads : {1, 2, 3, 7}) {
    Pool pool(threads);
    for (const std::size_t n : {0u, 1u, 2u, 63u, 64u, 65u, 1000u}) {
      for (const std::size_t grain : {1u, 7u, 64u, 5000u}) {
        std::vector<int> visits(n, 0);
        pool.for_chunks(n, grain, [&](std::size_t a, std::size_t b, int worker) {
          CHECK(a < b && b <= n && b - a <= grain && a % grain == 0);
          CHECK(worker >= 0 && worker < pool.size());
          for (std::size_t i = a; i < b; ++i) ++visits[i];
        });
        CHECK(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }));
      }
    }
  }
}

TEST(a_worker_is_never_at_two_places_at_once) {
  Pool pool(4);
  std::vector<std::atomic<int>> inside(4);
  pool.for_chunks(500, 1, [&](std::size_t, std::size_t, int worker) {
    CHECK(++inside[static_cast<std::size_t>(worker)] == 1);
    --inside[static_cast<std::size_t>(worker)];
  });
}

TEST(a_tally_is_added_in_the_order_of_its_chunks) {
  // 2^53 + 1 + 1 + ... depends on the order; so does the sum of these
  auto part = [](std::size_t a, std::size_t b, int) {
    double s = 0.0;
    for (std::size_t i = a; i < b; ++i) s += i % 3 ? 1.0 / static_cast<double>(i + 1) : 0x1p53 * (i % 2 ? 1 : -1);
    return s;
  };
  double want = 0.0;
  for (std::size_t a = 0; a < 10000; a += 37) want += part(a, std::min<std::size_t>(10000, a + 37), 0);
  for (const int threads : {1, 2, 3, 7}) {
    Pool pool(threads);
    for (int round = 0; round < 20; ++round) CHECK(pool.tally<double>(10000, 37, part) == want);
  }
}

TEST(an_exception_in_any_worker_reaches_the_caller_and_the_pool_lives_on) {
  for (const int threads : {1, 3}) {
    Pool pool(threads);
    for (int round = 0; round < 30; ++round) {
      bool caught = false;
      try {
        pool.for_chunks(100, 1, [&](std::size_t a, std::size_t, int) {
          if (a % 50 == 20) throw std::runtime_error("chunk");
        });
      } catch (const std::runtime_error& e) {
        caught = std::string(e.what()) == "chunk";
      }
      CHECK(caught);
      CHECK(pool.tally<std::size_t>(100, 3, [](std::size_t a, std::size_t b, int) { return b - a; }) == 100);
    }
  }
}

TEST(work_without_end_is_cancelled_by_the_poll) {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> asked{0};
    Pool pool(threads, [&] { return ++asked >= 3; });
    bool cancelled = false;
    try {
      pool.for_chunks(std::size_t{1} << 60, 1, [](std::size_t, std::size_t, int) {});
    } catch (const k2::Cancelled&) {
      cancelled = true;
    }
    CHECK(cancelled);
    CHECK(asked == 3);
    CHECK(pool.tally<std::size_t>(10, 1, [](std::size_t, std::size_t, int) { return std::size_t{1}; }) == 10);
  }
}

TEST(only_the_calling_thread_polls) {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> others{0}, asked{0};
  Pool pool(3, [&] {
    if (std::this_thread::get_id() != caller) ++others;
    return ++asked == 4;
  });
  try {
    pool.for_chunks(std::size_t{1} << 60, 1, [](std::size_t, std::size_t, int) {});
  } catch (const k2::Cancelled&) {
  }
  CHECK(asked == 4);
  CHECK(others == 0);
}

TEST(many_pools_work_at_once) {
  std::vector<std::size_t> sums(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < sums.size(); ++t) {
      threads.emplace_back([&sums, t] {
        for (int round = 0; round < 20; ++round) {
          Pool pool(2);
          sums[t] += pool.tally<std::size_t>(200, 1, [](std::size_t a, std::size_t, int) { return a; });
        }
      });
    }
  }
  for (const std::size_t s : sums) CHECK(s == 20 * 199 * 100);
}

// The thread that works beside the caller: the caller's own chunk ends only when the other has come.
std::thread::id mate(Pool& pool) {
  std::atomic<std::thread::id> other{};
  const auto caller = std::this_thread::get_id();
  pool.for_chunks(2, 1, [&](std::size_t, std::size_t, int) {
    if (std::this_thread::get_id() != caller) other = std::this_thread::get_id();
    while (other.load() == std::thread::id()) std::this_thread::yield();
  });
  return other;
}

TEST(threads_of_a_pool_that_is_gone_serve_the_next_of_its_size) {
  auto first = std::make_unique<Pool>(2), second = std::make_unique<Pool>(2);
  const auto one = mate(*first), two = mate(*second);
  CHECK(one != two);  // two at once share nobody
  first.reset();
  Pool third(2);
  CHECK(mate(third) == one);
  CHECK(mate(*second) == two);
  second.reset();
  Pool larger(3);  // needs more
  std::atomic<int> there{0};
  larger.for_chunks(3, 1, [&](std::size_t, std::size_t, int) {
    for (++there; there < 3;) std::this_thread::yield();
  });
  CHECK(there == 3);
}

TEST(a_job_is_whole_whoever_comes_in_time) {
  for (int round = 0; round < 10; ++round) {
    Pool pool(64);  // far more than there are cores: many come late
    for (int job = 0; job < 20; ++job) {
      std::atomic<std::size_t> sum{0};
      pool.for_chunks(70, 1, [&](std::size_t a, std::size_t, int) { sum += a; });
      CHECK(sum == 70 * 69 / 2);
    }
  }
}

TEST(who_is_done_helps_the_others) {
  for (const int threads : {2, 3, 5}) {
    Pool pool(threads);
    std::atomic<std::size_t> done{0};
    pool.for_chunks(40, 1, [&](std::size_t a, std::size_t, int) {
      // the first chunk ends only when all others have: so the rest of its share is done by another
      while (a == 0 && done < 39) std::this_thread::yield();
      ++done;
    });
    CHECK(done == 40);
  }
}

// ThreadSanitizer does not support threads after a fork, and qemu-user crashes; it shows the cpuinfo of its host.
bool can_fork() {
#if defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__aarch64__)
  std::ifstream info("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(info)), std::istreambuf_iterator<char>());
  return text.find("vendor_id") == std::string::npos;
#else
  return true;
#endif
}

TEST(a_pool_works_in_both_processes_after_a_fork) {
  if (!can_fork()) return;
  Pool pool(3);
  auto sum = [&] { return pool.tally<std::size_t>(300, 1, [](std::size_t a, std::size_t, int) { return a; }); };
  const std::size_t want = sum();
  (void)mate(*std::make_unique<Pool>(2));  // leaves a thread behind, which the child does not have
  const pid_t child = fork();
  if (child == 0) {
    bool same = sum() == want && sum() == want;
    {
      Pool other(2);
      same =
          same && other.tally<std::size_t>(10, 1, [](std::size_t, std::size_t, int) { return std::size_t{1}; }) == 10;
    }
    _exit(same ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(sum() == want);
}
