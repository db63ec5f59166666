// The pool: for_chunks and tally. With crew.hpp the only file with threads.
//
// Chunks have a size that does not depend on the number of threads, and tally() adds the chunks' results in chunk
// order, so whatever is computed here has the same bits for any number of threads. The calling thread works too; now
// and then it asks `poll` whether to give up (Ctrl-C), and for_chunks() then throws Cancelled.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "crew.hpp"

namespace k2 {

struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

// A lock for each of many things, several things to a lock.
class Locks {
 public:
  struct Guard : std::lock_guard<std::mutex> {
    Guard(Locks& locks, std::size_t thing) : std::lock_guard<std::mutex>((*locks.all_)[thing % kCount]) {}
  };

 private:
  static constexpr std::size_t kCount = 256;
  std::unique_ptr<std::array<std::mutex, kCount>> all_ = std::make_unique<std::array<std::mutex, kCount>>();
};

// A number that some read while another changes it: they see it as it was or as it is.
template <class T>
class Changing {
 public:
  T get() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{};
};

class Pool {
 public:
  using Poll = std::function<bool()>;  // true: stop now

  explicit Pool(int threads, Poll poll = {}) : size_(std::max(1, threads)), poll_(std::move(poll)) {}
  ~Pool() { Crew::dismiss(std::move(crew_)); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int size() const { return size_; }
  const Poll& poll() const { return poll_; }  // for the calling thread only

  // f(begin, end, worker) for consecutive ranges of at most `grain` items; worker < size() names the caller's scratch.
  template <class F>
  void for_chunks(std::size_t n, std::size_t grain, F&& f) {
    const std::size_t chunks = (n + grain - 1) / grain;
    auto chunk = [&](std::size_t c, int worker) { f(c * grain, std::min(n, (c + 1) * grain), worker); };
    run(chunks, chunk);
  }

  // The sum, in chunk order, of what f(begin, end, worker) returns.
  template <class R, class F>
  R tally(std::size_t n, std::size_t grain, F&& f) {
    const std::size_t chunks = (n + grain - 1) / grain;
    std::vector<R> parts(chunks);
    auto chunk = [&](std::size_t c, int worker) { parts[c] = f(c * grain, std::min(n, (c + 1) * grain), worker); };
    run(chunks, chunk);
    R sum{};
    for (const R& part : parts) sum += part;
    return sum;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPollEvery = std::chrono::milliseconds(50);

  // Each worker begins with a share of its own, the same in every job over the same things, so that these stay in its
  // core's caches; then it helps the next.
  struct Job {
    struct alignas(64) Share {
      std::atomic<std::size_t> next{0};
      std::size_t end = 0;
    };

    Job(std::size_t chunks, std::size_t workers, std::function<void(std::size_t, int)> f)
        : chunk(std::move(f)), shares(workers) {
      for (std::size_t w = 0; w < workers; ++w) {
        shares[w].next = chunks / workers * w + std::min(w, chunks % workers);
        shares[w].end = shares[w].next + chunks / workers + (w < chunks % workers ? 1 : 0);
      }
    }

    std::function<void(std::size_t, int)> chunk;
    std::vector<Share> shares;
    std::atomic<bool> stop{false};
    std::mutex guard;
    std::exception_ptr error;

    void fail(std::exception_ptr e) {
      std::lock_guard lock(guard);
      if (!error) error = e;
      stop = true;
    }
  };

  void run(std::size_t chunks, std::function<void(std::size_t, int)> chunk) {
    const bool alone = size_ == 1 || chunks <= 1;
    Job job(chunks, alone ? 1 : static_cast<std::size_t>(size_), std::move(chunk));
    if (alone) {
      work(job, 0);
    } else {
      hire()([&](int worker) { work(job, worker); }, kPollEvery, [&] { ask(job); });
    }
    if (job.error) std::rethrow_exception(job.error);
  }

  void work(Job& job, int worker) {
    try {
      for (std::size_t s = 0; s < job.shares.size(); ++s) {
        Job::Share& share = job.shares[(static_cast<std::size_t>(worker) + s) % job.shares.size()];
        for (std::size_t c; !job.stop && (c = share.next++) < share.end;) {
          job.chunk(c, worker);
          if (worker == 0) ask(job);
        }
      }
    } catch (...) {
      job.fail(std::current_exception());
    }
  }

  void ask(Job& job) {  // on the calling thread only
    const auto now = Clock::now();
    if (!poll_ || job.stop || now - asked_ < kPollEvery) return;
    asked_ = now;
    if (poll_()) job.fail(std::make_exception_ptr(Cancelled()));
  }

  Crew& hire() {
    if (crew_ && !crew_->at_home()) Crew::dismiss(std::move(crew_));
    if (!crew_) crew_ = Crew::hire(size_);
    return *crew_;
  }

  int size_;
  Poll poll_;
  Clock::time_point asked_ = Clock::now();
  std::unique_ptr<Crew> crew_;
};

}  // namespace k2
