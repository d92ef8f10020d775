// Task: a coroutine with a result; TaskGroup: the owner of running ones. For the threads that wait on other servers
// (the webhook's control thread, the controller); the admission path has none.
//
// Rules (docs/traps.md): coroutines are named functions, their parameters are values or outlive them, and an awaitable
// is named before it is awaited when its expression holds temporaries.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <string>

#include "net/request.hpp"

namespace ossa::net {

template <class T>
using Task = boost::asio::awaitable<T>;

// Runs tasks on one executor and keeps count of them. A task that throws has a bug: it is counted and logged, and ends
// alone. All ends before the executor's context does. Belongs to the executor's thread, but for spawn.
class TaskGroup {
  public:
    explicit TaskGroup(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
    // Any thread. `name` is for the log.
    void spawn(std::string name, Task<void> task);
    const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  private:
    boost::asio::any_io_executor executor_;
};

Task<void> sleep_until(SteadyPoint when);

}  // namespace ossa::net
