#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/log.hpp"
#include "net/metrics.hpp"

namespace ossa::net {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string line_of(LogFormat format, std::string_view message, std::initializer_list<LogField> fields) {
    std::string out;
    detail::append_fields(out, format, message, fields);
    return out;
}

TEST(Log, WritesKeyValueText) {
    EXPECT_EQ(
        line_of(LogFormat::text, "denied",
                {{"agent", "team-a/echo"}, {"code", 422}, {"ok", true}, {"empty", ""}, {"two", "a b"}, {"half", 0.5}}),
        R"(denied agent=team-a/echo code=422 ok=true empty="" two="a b" half=0.5)");
}

TEST(Log, WritesJson) {
    EXPECT_EQ(line_of(LogFormat::json, "denied", {{"agent", "a"}, {"code", -1}, {"ok", false}}),
              R"("msg":"denied","agent":"a","code":-1,"ok":false)");
}

TEST(Log, LetsNothingForgeALineOrReachTheTerminal) {
    const std::string evil =
        "a\nlevel=error \x1b[31m\x7f\xC2\x9B"
        "2J\xff\"\\ \xC3\xA4";
    EXPECT_EQ(line_of(LogFormat::text, "m", {{"name", evil}}),
              "m name=\"a\\nlevel=error \\x1b[31m\\x7f\\u009b2J\\xff\\\"\\\\ \xC3\xA4\"");
    EXPECT_EQ(line_of(LogFormat::json, "m", {{"name", evil}}),
              "\"msg\":\"m\",\"name\":\"a\\nlevel=error \\u001b[31m\\u007f\\u009b2J\\\\xff\\\"\\\\ \xC3\xA4\"");
    // Overlong, surrogate, cut off: not UTF-8.
    EXPECT_EQ(line_of(LogFormat::text, "m", {{"n", "\xC0\xAF\xED\xA0\x80\xE2\x82"}}),
              R"(m n="\xc0\xaf\xed\xa0\x80\xe2\x82")");
    EXPECT_THAT(line_of(LogFormat::text, "m", {{"n", "a=b"}}), HasSubstr(R"(n="a=b")"));
}

TEST(Log, EvaluatesNothingBelowTheLevel) {
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
    set_log_level(LogLevel::info);
    int evaluated = 0;
    const auto value = [&] { return ++evaluated; };
    OSSA_LOG(debug, "quiet", {"n", value()});
    OSSA_LOG(info, "loud", {"n", value()});
    OSSA_LOG(warn, "bare");
    set_log_sink({});
    EXPECT_EQ(evaluated, 1);
    EXPECT_EQ(lines, (std::vector<std::string>{"loud n=1", "bare"}));
}

TEST(Log, KnowsItsWords) {
    EXPECT_EQ(parse_log_level("warn").value(), LogLevel::warn);
    EXPECT_FALSE(parse_log_level("WARN"));
    EXPECT_EQ(parse_log_format("json").value(), LogFormat::json);
    EXPECT_FALSE(parse_log_format("xml"));
}

TEST(Metrics, GivesOneHandleForOneNameAndLabels) {
    Metrics metrics;
    Counter& a = metrics.counter("c_total", "help", {{"path", "/a"}});
    EXPECT_EQ(&a, &metrics.counter("c_total", "other help", {{"path", "/a"}}));
    EXPECT_NE(&a, &metrics.counter("c_total", "help", {{"path", "/b"}}));
    a.add();
    a.add(2);
    metrics.gauge("g", "a gauge").set(-3);
    metrics.read("r", "read elsewhere", Metrics::ReadAs::gauge, [] { return 1.5; });
    const std::string text = metrics.text();
    EXPECT_THAT(text, HasSubstr("# HELP c_total help\n# TYPE c_total counter\n"));
    EXPECT_THAT(text, HasSubstr("c_total{path=\"/a\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("c_total{path=\"/b\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE g gauge\ng -3\n"));
    EXPECT_THAT(text, HasSubstr("r 1.5\n"));
}

TEST(Metrics, EscapesLabels) {
    Metrics metrics;
    metrics.counter("c_total", "h", {{"x", "a\"b\\c\nd"}}).add();
    EXPECT_THAT(metrics.text(), HasSubstr(R"(c_total{x="a\"b\\c\nd"} 1)"));
}

TEST(Metrics, HistogramCountsIntoBucketsAndTheirSum) {
    using namespace std::chrono_literals;
    Metrics metrics;
    const std::chrono::nanoseconds bounds[] = {1ms, 10ms};
    Histogram& histogram = metrics.histogram("h_seconds", "h", {{"path", "/a"}}, bounds);
    histogram.observe(1ms);  // the upper bound belongs to its bucket
    histogram.observe(2ms);
    histogram.observe(11ms);
    histogram.observe(0ms);
    EXPECT_EQ(histogram.count(), 4U);
    const std::string text = metrics.text();
    EXPECT_THAT(text, HasSubstr("h_seconds_count{path=\"/a\"} 4\n"));
    EXPECT_THAT(text, HasSubstr("h_seconds_sum{path=\"/a\"} 0.014"));
    EXPECT_THAT(text, HasSubstr("h_seconds_bucket{path=\"/a\",le=\"0.001\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("h_seconds_bucket{path=\"/a\",le=\"0.01\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("h_seconds_bucket{path=\"/a\",le=\"+Inf\"} 4\n"));
}

TEST(Metrics, LosesNoCountBetweenThreads) {
    Metrics metrics;
    Counter& counter = metrics.counter("c_total", "h");
    Histogram& histogram = metrics.histogram("h_seconds", "h");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 10000; ++n) {
                counter.add();
                histogram.observe(std::chrono::microseconds{n});
            }
        });
    }
    for (int n = 0; n < 20; ++n) {
        EXPECT_THAT(metrics.text(), Not(testing::IsEmpty()));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(counter.value(), 40000U);
    EXPECT_EQ(histogram.count(), 40000U);
}

}  // namespace
}  // namespace ossa::net
