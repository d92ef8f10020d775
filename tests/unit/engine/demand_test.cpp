#include "engine/demand.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ossa::engine {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

Demand of(std::string_view spec, std::string_view gpu_resource = default_gpu_resource) {
    auto document = json::Document::from(spec);
    EXPECT_TRUE(document) << spec;
    return demand_of(document->root(), gpu_resource);
}

void expect(std::string_view spec, Demand wanted, std::string_view gpu_resource = default_gpu_resource) {
    const Demand found = of(spec, gpu_resource);
    EXPECT_EQ(found, wanted) << spec << ": " << found.agents << " " << found.replicas << " " << found.gpus;
}

TEST(Demand, ReplicasAreTheMostThatCanRun) {
    expect(R"({"agent":{"runtime":{"type":"k8s","replicas":3}}})", {1, 3, 0});
    expect(R"({"agent":{"runtime":{"type":"docker","replicas":3}},"scaling":{"minReplicas":1,"maxReplicas":7}})",
           {1, 7, 0});
    expect(R"({"agent":{"runtime":{"type":"k8s"}}})", {1, 1, 0});
    expect(R"({"agent":{"runtime":{"type":"k8s","replicas":0}}})", {1, 0, 0});
    expect(R"({"agent":{"runtime":{"type":"k8s","replicas":-4}}})", {1, 0, 0});
}

TEST(Demand, WhatNeverRunsHereTakesOneAgentOnly) {
    for (const std::string type : {"local", "edge", "serverless"}) {
        expect(R"({"agent":{"runtime":{"type":")" + type + R"(","replicas":3,"resources":{"gpu":true}}}})", {1, 0, 0});
    }
}

TEST(Demand, GpusOfOneReplicaTimesReplicas) {
    const auto with = [](std::string_view resources, std::string_view gpu = "false") {
        return R"({"agent":{"runtime":{"type":"k8s","replicas":3,"resources":{"gpu":)" + std::string(gpu) +
               R"(}}},"workload":{"resources":)" + std::string(resources) + "}}";
    };
    expect(with("{}", "true"), {1, 3, 3});
    expect(with(R"({"limits":{"nvidia.com/gpu":2}})"), {1, 3, 6});
    expect(with(R"({"limits":{"nvidia.com/gpu":"2"}})", "true"), {1, 3, 6});
    expect(with(R"({"requests":{"nvidia.com/gpu":"1"}})"), {1, 3, 3});
    expect(with(R"({"limits":{"nvidia.com/gpu":"2k"}})"), {1, 3, 6000});
    expect(with(R"({"limits":{"nvidia.com/gpu":"1500m"}})"), {1, 3, 6});
    expect(with(R"({"limits":{"nvidia.com/gpu":"-1"}})"), {1, 3, 0});
    expect(with(R"({"limits":{"nvidia.com/gpu":"many"}})"), {1, 3, 0});
    expect(with(R"({"limits":{"nvidia.com/gpu":0}})", "true"), {1, 3, 0});
    expect(with(R"({"limits":{"amd.com/gpu":2}})"), {1, 3, 0});
    expect(with(R"({"limits":{"amd.com/gpu":2}})"), {1, 3, 6}, "amd.com/gpu");
}

TEST(Demand, StopsAtTheLargestNumber) {
    expect(R"({"agent":{"runtime":{"type":"k8s","replicas":10000}},)"
           R"("workload":{"resources":{"limits":{"nvidia.com/gpu":"9223372036854775807"}}}})",
           {1, 10000, most});
    EXPECT_EQ(sum({1, most, 1}, {1, 1, most}), (Demand{2, most, most}));
}

TEST(Demand, ARiseHasNoNegativeDimension) {
    EXPECT_EQ(rise({1, 5, 0}, {1, 3, 2}), (Demand{0, 0, 2}));
    EXPECT_EQ(larger_of({1, 5, 0}, {1, 3, 2}), (Demand{1, 5, 2}));
    EXPECT_TRUE(rise({1, 5, 2}, {1, 5, 2}).is_nothing());
}

}  // namespace
}  // namespace ossa::engine
