// Threads that wait for jobs, and how a job is handed to them: no lock while they are awake, and nobody who has not
// begun is waited for, so a busy machine or a thread that sleeps delays nothing.
#pragma once

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace k2 {

class Crew {
 public:
  using Work = std::function<void(int worker)>;  // must not throw

  // One that has nothing to do is kept for whoever needs as many: to start a thread takes longer than a small job.
  static std::unique_ptr<Crew> hire(int size) {
    std::unique_ptr<Crew> crew(idle_.exchange(nullptr));
    if (crew && crew->at_home() && crew->size_ == size) return crew;
    forget(std::move(crew));
    return std::make_unique<Crew>(size);
  }
  static void dismiss(std::unique_ptr<Crew> crew) {
    if (crew && crew->at_home()) crew.reset(idle_.exchange(crew.release()));
    forget(std::move(crew));
  }

  // Where the system gives no more threads, those there are do the work.
  explicit Crew(int size) : size_(size) {
    try {
      for (int i = 1; i < size; ++i) {
        threads_.emplace_back([this, i] { serve(i); });
        spread(threads_.back(), i);
      }
    } catch (const std::system_error&) {
    }
  }
  ~Crew() {
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
      wake_.notify_all();
    }
    for (auto& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool at_home() const { return home_ == getpid(); }

  // The caller works as worker 0, and who of the others is there in time joins. While they finish and the caller has
  // nothing left to do, `meanwhile` is called every `often`.
  void operator()(const Work& work, std::chrono::milliseconds often, const std::function<void()>& meanwhile) {
    work_ = &work;
    state_ = (state_ / kNext + 1) * kNext | kOpen;
    if (asleep_ > 0) {
      std::lock_guard lock(mutex_);
      wake_.notify_all();
    }
    work(0);
    state_ &= ~kOpen;
    auto alone = [&] { return (state_ & kJoined) == 0; };
    if (stay_awake(alone)) return;
    std::unique_lock lock(mutex_);
    caller_asleep_ = true;
    while (!done_.wait_for(lock, often, alone)) {
      lock.unlock();
      meanwhile();
      lock.lock();
    }
    caller_asleep_ = false;
  }

 private:
  // A fork copies the memory but not the threads: the copy in a child has nobody, and its locks may be held for ever.
  static void forget(std::unique_ptr<Crew> crew) {
    if (crew && !crew->at_home()) (void)crew.release();
  }

  using Clock = std::chrono::steady_clock;
  static constexpr auto kAwake = std::chrono::microseconds(200);

  // A new thread may be put where its maker is busy, and wait there for as long as many jobs take. So it is sent to the
  // i-th core from here, of those we may use; where it goes from there is the system's affair again.
  static void spread([[maybe_unused]] std::thread& thread, [[maybe_unused]] int i) {
#if defined(__linux__)
    cpu_set_t ours, one;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0) return;
    int core = std::max(0, sched_getcpu());
    for (int left = CPU_COUNT(&ours) > 1 ? i : 0; left > 0; left -= CPU_ISSET(core, &ours) ? 1 : 0) {
      core = (core + 1) % CPU_SETSIZE;
    }
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(thread.native_handle(), sizeof one, &one);
    pthread_setaffinity_np(thread.native_handle(), sizeof ours, &ours);
#endif
  }

  // Jobs are often short, and follow each other: to wake a thread takes as long as many of them. Whether it happened.
  template <class F>
  static bool stay_awake(F&& what) {
    for (const auto end = Clock::now() + kAwake; Clock::now() < end; std::this_thread::yield()) {
      if (what()) return true;
    }
    return false;
  }

  void serve(int worker) {
    for (std::uint64_t seen = 0; !quit_;) {
      auto wanted = [&] { return quit_ || calls(state_, seen); };
      if (!stay_awake(wanted)) {
        std::unique_lock lock(mutex_);
        ++asleep_;
        wake_.wait(lock, wanted);
        --asleep_;
      }
      if (!join(seen)) continue;
      (*work_)(worker);
      if ((--state_ & (kOpen | kJoined)) != 0 || !caller_asleep_) continue;
      std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }

  // Whether there is a job to join that this worker has not seen.
  static bool calls(std::uint64_t state, std::uint64_t seen) { return (state & kOpen) && state / kNext != seen; }
  bool join(std::uint64_t& seen) {
    for (std::uint64_t s = state_; calls(s, seen);) {
      if (!state_.compare_exchange_weak(s, s + 1)) continue;
      seen = s / kNext;
      return true;
    }
    return false;
  }

  // The number of the job, whether it may still be joined, how many are at it. Who is awake looks at it without a lock.
  // Who is about to sleep says so and looks again; who changes it looks for sleepers after: so one sees the other.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 16, kJoined = kOpen - 1, kNext = kOpen << 1;
  std::atomic<std::uint64_t> state_{0};
  const Work* work_ = nullptr;  // of this job; there while it is open or anybody is at it
  std::atomic<int> asleep_{0};
  std::atomic<bool> caller_asleep_{false}, quit_{false};
  const int size_;
  const pid_t home_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  inline static std::atomic<Crew*> idle_{nullptr};  // never more than one
};

}  // namespace k2
