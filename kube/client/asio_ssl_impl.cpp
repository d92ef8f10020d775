// Asio's TLS, compiled once: only this room uses it.
#include <boost/asio/ssl/impl/src.hpp>
