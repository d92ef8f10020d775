// Oracle: the second opinion on our compiled plan, from a library that shares no code with it (valijson, tests only).
//
// `pattern` and `format` are judged by RE2 through valijson's hook for own constraints: its std::regex overflows the
// stack on long texts. URIs have their own grammar here, written from RFC 3986 and not from schema/uri.cpp. It
// understands what valijson and the rewriting of schemas understand: enough for the OSSA schema. Documents must be
// valid for json::Document. Thread: one Oracle belongs to one thread at a time.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace ossa::oracle {

struct Opinion {
    bool valid = false;
    std::set<std::string>
        leaves;  // instance pointers of what is wrong; a failed oneOf is one place, whatever its branches say
    bool operator==(const Opinion& other) const { return valid == other.valid && leaves == other.leaves; }
};

class Oracle {
  public:
    // Throws when valijson cannot use the schema.
    explicit Oracle(std::string_view schema_text);
    ~Oracle();
    Oracle(const Oracle&) = delete;
    Oracle& operator=(const Oracle&) = delete;

    Opinion judge(json::Value document) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// RFC 3986, "URI" in its appendix A.
bool is_uri(std::string_view text);

}  // namespace ossa::oracle
