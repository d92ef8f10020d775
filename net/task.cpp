#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>

#include "base/bug.hpp"
#include "net/log.hpp"

namespace ossa::net {

namespace asio = boost::asio;

void TaskGroup::spawn(std::string name, Task<void> task) {
    asio::co_spawn(executor_, std::move(task), [name = std::move(name)](const std::exception_ptr& failed) {
        if (!failed) {
            return;
        }
        count_bug();
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            OSSA_LOG(error, "a task ended by an exception: this is a bug of ours", {"task", name},
                     {"what", std::string_view{e.what()}});
        }
    });
}

Task<void> sleep_until(SteadyPoint when) {
    asio::steady_timer timer{co_await asio::this_coro::executor, when};
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace ossa::net
