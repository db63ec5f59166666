// The pool: for_chunks and tally. The only file with threads.
//
// Chunks have a size that does not depend on the number of threads, and tally() adds the chunks' results in chunk
// order, so whatever is computed here has the same bits for any number of threads. The calling thread works too; now
// and then it asks `poll` whether to give up (Ctrl-C), and for_chunks() then throws Cancelled.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  ~Pool() { dismiss(); }
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
  static constexpr auto kAwake = std::chrono::microseconds(50);

  struct Job {
    std::function<void(std::size_t, int)> chunk;
    std::size_t chunks = 0;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex guard;
    std::exception_ptr error;

    void fail(std::exception_ptr e) {
      std::lock_guard lock(guard);
      if (!error) error = e;
      stop = true;
    }
  };

  // The hired threads and what they wait on. A fork copies the memory but not the threads, so a crew serves one
  // process only; the copy in a child is left alone, for its locks may be held by threads that are not there.
  struct Crew {
    const pid_t home = getpid();
    std::mutex mutex;
    std::condition_variable wake, done;
    Job* job = nullptr;
    std::atomic<std::uint64_t> generation{0};  // changed, as busy, under the lock; but read without it by who is awake
    std::atomic<int> busy{0};
    bool quit = false;
    std::vector<std::thread> threads;
  };

  void run(std::size_t chunks, std::function<void(std::size_t, int)> chunk) {
    Job job;
    job.chunk = std::move(chunk);
    job.chunks = chunks;
    if (size_ == 1 || chunks <= 1) {
      work(job, 0);
    } else {
      Crew& crew = hire();
      {
        std::lock_guard lock(crew.mutex);
        crew.job = &job;
        ++crew.generation;
        crew.busy = size_ - 1;
        crew.wake.notify_all();
      }
      work(job, 0);
      stay_awake([&] { return crew.busy == 0; });
      std::unique_lock lock(crew.mutex);
      while (!crew.done.wait_for(lock, kPollEvery, [&] { return crew.busy == 0; })) {
        lock.unlock();
        ask(job);
        lock.lock();
      }
    }
    if (job.error) std::rethrow_exception(job.error);
  }

  void work(Job& job, int worker) {
    try {
      for (std::size_t c; !job.stop && (c = job.next++) < job.chunks;) {
        job.chunk(c, worker);
        if (worker == 0) ask(job);
      }
    } catch (...) {
      job.fail(std::current_exception());
    }
  }

  void ask(Job& job) {  // on the calling thread only
    const auto now = Clock::now();
    if (!poll_ || now - asked_ < kPollEvery) return;
    asked_ = now;
    if (poll_()) job.fail(std::make_exception_ptr(Cancelled()));
  }

  Crew& hire() {
    if (crew_ && crew_->home != getpid()) (void)crew_.release();
    if (!crew_) {
      crew_ = std::make_unique<Crew>();
      for (int i = 1; i < size_; ++i) crew_->threads.emplace_back([this, i, crew = crew_.get()] { serve(*crew, i); });
    }
    return *crew_;
  }

  // Jobs are often short, and follow each other: to wake a thread takes as long as many of them.
  template <class F>
  static void stay_awake(F&& until) {
    for (const auto end = Clock::now() + kAwake; !until() && Clock::now() < end;) std::this_thread::yield();
  }

  void serve(Crew& crew, int worker) {
    std::unique_lock lock(crew.mutex);
    for (std::uint64_t seen = 0;;) {
      lock.unlock();
      stay_awake([&] { return crew.generation != seen; });
      lock.lock();
      crew.wake.wait(lock, [&] { return crew.quit || crew.generation != seen; });
      if (crew.quit) return;
      seen = crew.generation;
      Job* job = crew.job;
      lock.unlock();
      work(*job, worker);
      lock.lock();
      if (--crew.busy == 0) crew.done.notify_one();
    }
  }

  void dismiss() {
    if (!crew_) return;
    if (crew_->home != getpid()) {
      (void)crew_.release();
      return;
    }
    {
      std::lock_guard lock(crew_->mutex);
      crew_->quit = true;
      crew_->wake.notify_all();
    }
    for (auto& thread : crew_->threads) thread.join();
  }

  int size_;
  Poll poll_;
  Clock::time_point asked_ = Clock::now();
  std::unique_ptr<Crew> crew_;
};

}  // namespace k2
