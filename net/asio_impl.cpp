// The one place where Asio's and Beast's non-template parts are compiled.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
