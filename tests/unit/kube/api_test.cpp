#include "kube/types/api.hpp"

#include <gtest/gtest.h>

namespace ossa::kube {
namespace {

TEST(ApiPath, NamesEverySegment) {
    EXPECT_EQ(path_of(agents, "team", "scanner", "status"), "/apis/ossa.ai/v1/namespaces/team/agents/scanner/status");
    EXPECT_EQ(path_of(agents), "/apis/ossa.ai/v1/agents");
    EXPECT_EQ(path_of(resource_quotas, "team"), "/api/v1/namespaces/team/resourcequotas");
    EXPECT_EQ(path_of(agents, "a/b", "../x?y"), "/apis/ossa.ai/v1/namespaces/a%2Fb/agents/..%2Fx%3Fy")
        << "a name leads nowhere else";
}

TEST(ApiRequests, SayWhatTheyMean) {
    EXPECT_EQ(list_request(agents, "", 500, "a+b=").target, "/apis/ossa.ai/v1/agents?limit=500&continue=a%2Bb%3D");
    EXPECT_EQ(watch_request(agents, "", "17", std::chrono::seconds(45)).target,
              "/apis/ossa.ai/v1/agents?watch=1&allowWatchBookmarks=true&timeoutSeconds=45&resourceVersion=17");
    EXPECT_EQ(watch_request(agents, "", "", std::chrono::seconds(45), true).target,
              "/apis/ossa.ai/v1/agents?watch=1&allowWatchBookmarks=true&timeoutSeconds=45&sendInitialEvents=true&"
              "resourceVersionMatch=NotOlderThan");
    const auto apply = apply_request(network_policies, {"n", "p"}, "", "ossa-controller", "{}");
    EXPECT_EQ(apply.target,
              "/apis/networking.k8s.io/v1/namespaces/n/networkpolicies/p?force=true&fieldManager=ossa-controller");
    EXPECT_EQ(content_type(apply.body_kind), "application/apply-patch+yaml");
    EXPECT_EQ(to_string(apply.verb), "PATCH");
}

// What a caller is told to do follows from the answer: try again, read again, give up.
TEST(ApiError, TellsWhatToDo) {
    struct Case {
        unsigned http;
        std::string_view reason;
        ErrorCode code;
        bool retryable;
    };
    for (const Case& c : std::initializer_list<Case>{{400, "BadRequest", ErrorCode::invalid, false},
                                                     {401, "Unauthorized", ErrorCode::unauthenticated, false},
                                                     {403, "Forbidden", ErrorCode::forbidden, false},
                                                     {404, "NotFound", ErrorCode::not_found, false},
                                                     {409, "Conflict", ErrorCode::conflict, true},
                                                     {409, "AlreadyExists", ErrorCode::already_exists, false},
                                                     {410, "Gone", ErrorCode::gone, true},
                                                     {410, "Expired", ErrorCode::gone, true},
                                                     {422, "Invalid", ErrorCode::invalid, false},
                                                     {413, "RequestEntityTooLarge", ErrorCode::too_large, false},
                                                     {429, "TooManyRequests", ErrorCode::throttled, true},
                                                     {500, "InternalError", ErrorCode::unavailable, true},
                                                     {503, "ServiceUnavailable", ErrorCode::unavailable, true},
                                                     {504, "Timeout", ErrorCode::deadline, true}}) {
        const std::string body = R"({"kind":"Status","code":)" + std::to_string(c.http) + R"(,"reason":")" +
                                 std::string(c.reason) + R"(","message":"why"})";
        const Error error = error_of_answer(c.http, body);
        EXPECT_EQ(error.code(), c.code) << body;
        EXPECT_EQ(error.retryable(), c.retryable) << body;
        EXPECT_NE(error.message().find("why"), std::string::npos);
    }
}

TEST(ApiError, TakesTheWaitFromTheHeaderOrTheStatus) {
    EXPECT_EQ(error_of_answer(429, "slow down", std::chrono::seconds(7)).retry_after(), std::chrono::seconds(7));
    EXPECT_EQ(error_of_answer(429, R"({"kind":"Status","code":429,"details":{"retryAfterSeconds":3}})").retry_after(),
              std::chrono::seconds(3));
    EXPECT_EQ(error_of_answer(502, "<html>bad gateway</html>").code(), ErrorCode::unavailable);
}

TEST(ApiTime, IsRfc3339) {
    const std::chrono::system_clock::time_point at{std::chrono::seconds(1'796'608'923) + std::chrono::microseconds(4)};
    EXPECT_EQ(micro_time(at), "2026-12-07T02:02:03.000004Z");
    EXPECT_EQ(second_time(at), "2026-12-07T02:02:03Z");
}

}  // namespace
}  // namespace ossa::kube
