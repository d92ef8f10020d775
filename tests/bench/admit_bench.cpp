// Where an admission's time goes, without the network: the steps of engine::admit over review files.
// usage: admit_bench REVIEW.json...             prints nanoseconds of CPU time per step, the best of several rounds
//        admit_bench --run PATH TIMES REVIEW.json...    only judges, for a profiler
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "engine/admission.hpp"
#include "schema/rules.hpp"
#include "schema/schemas.hpp"

namespace {

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double best_nanoseconds(const std::function<void()>& step) {
    double best = 1e18;
    for (int round = 0; round < 15; ++round) {
        const int times = 400;
        const double from = cpu_seconds();
        for (int i = 0; i < times; ++i) {
            step();
        }
        best = std::min(best, (cpu_seconds() - from) / times * 1e9);
    }
    return best;
}

// The text, with the bytes behind it that the parser may read.
std::string padded(const char* file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream read;
    read << in.rdbuf();
    return read.str().append(ossa::json::padding_bytes, ' ');
}

void run(ossa::engine::Door door, int times, const char* file) {
    using namespace ossa;
    const std::string text = padded(file);
    const std::string_view body{text.data(), text.size() - json::padding_bytes};
    engine::Scratch scratch;
    std::string answer;
    for (int i = 0; i < times; ++i) {
        answer.clear();
        (void)engine::admit(door, body, json::Padding::present, {}, {}, scratch, answer);
    }
    std::printf("%.200s\n", answer.c_str());
}

void measure(const char* file) {
    using namespace ossa;
    const std::string text = padded(file);
    const std::size_t size = text.size() - json::padding_bytes;
    const std::string_view body{text.data(), size};

    engine::Scratch scratch;
    std::string answer;
    json::Document document;
    const auto show = [&](const char* what, const std::function<void()>& step) {
        std::printf("%-44s %10.0f ns\n", what, best_nanoseconds(step));
    };
    std::printf("%s, %zu bytes\n", file, size);
    show("parse and check", [&] { (void)document.parse(body, {}, json::Padding::present); });
    if (!document.root().exists()) {
        std::printf("not JSON\n");
        return;
    }
    const json::Value object = document.root().at("request").at("object");
    const json::Value spec = object.at("spec");
    schema::RunResult run;
    show("schema plan, verdict only", [&] {
        run.clear();
        schema::agent_spec_plan().run(spec, {.base_pointer = "/spec"}, run);
    });
    show("schema plan with defaults", [&] {
        run.clear();
        schema::agent_spec_plan().run(spec, {.base_pointer = "/spec", .collect_fills = true}, run);
    });
    kube::Findings findings;
    show("rules", [&] { schema::check_agent(object, {}, {}, findings); });
    show("warnings", [&] { schema::warn_agent(object, {}, findings); });
    show("inline schemas", [&] {
        schema::warn_inline_schemas(spec.at("agent"), "/spec/agent", schema::metaschema_plan(),
                                    engine::inline_schema_steps_max, findings);
    });
    for (const engine::Door door : {engine::Door::mutate_agent, engine::Door::validate_agent}) {
        show(std::string("the whole of ").append(engine::path_of(door)).c_str(), [&] {
            answer.clear();
            (void)engine::admit(door, body, json::Padding::present, {}, {}, scratch, answer);
        });
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (first == "--run" && argc >= 5) {
        const auto door = ossa::engine::door_of(argv[2]);
        const int times = std::atoi(argv[3]);
        if (door && times > 0) {
            std::for_each(argv + 4, argv + argc, [&](const char* file) { run(*door, times, file); });
            return 0;
        }
    }
    if (first.empty() || first.starts_with("--")) {
        std::fprintf(stderr, "usage: admit_bench REVIEW.json... | admit_bench --run PATH TIMES REVIEW.json...\n");
        return 2;
    }
    std::for_each(argv + 1, argv + argc, measure);
}
