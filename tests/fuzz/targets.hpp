// Fuzz targets: one function for each, fed with any bytes. A broken promise is thrown as a Complaint, which libFuzzer
// takes for a crash and the replay test for a failure. They keep their state between calls, as the webhook does; one
// thread.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ossa::fuzz {

struct Complaint : std::logic_error {
    using std::logic_error::logic_error;
};

// A review is answered at every door: with JSON, under its uid; what was defaulted once is not defaulted again.
void admission_review(std::string_view bytes);
// parse, print, parse gives an equal document, and judging it twice gives the same findings.
void agent_parse(std::string_view bytes);
// The compiled plan and valijson agree in verdict and places.
void schema_validate(std::string_view bytes);
// simdjson and RapidJSON give the same verdict and equal values.
void json_document(std::string_view bytes);
// Quantity, Semver, ImageReference and durations.
void kube_values(std::string_view bytes);
// The hand-written URI reader and the grammar of RFC 3986 agree.
void uri(std::string_view bytes);

struct Target {
    std::string_view name;
    void (*run)(std::string_view bytes);
};
inline constexpr std::array<Target, 6> targets{{{"admission_review", admission_review},
                                                {"agent_parse", agent_parse},
                                                {"schema_validate", schema_validate},
                                                {"json_document", json_document},
                                                {"kube_values", kube_values},
                                                {"uri", uri}}};

inline void demand(bool holds, const char* promise, std::string_view about = {}) {
    if (!holds) {
        throw Complaint(std::string(promise) + ": " + std::string(about.substr(0, 2000)));
    }
}

}  // namespace ossa::fuzz
