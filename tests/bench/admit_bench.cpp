// Where an admission's time goes, without the network: the steps of engine::admit over review files.
// usage: admit_bench REVIEW.json...     prints nanoseconds of CPU time per step, the best of several rounds
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

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

void measure(const char* file) {
    using namespace ossa;
    std::ifstream in(file, std::ios::binary);
    std::stringstream read;
    read << in.rdbuf();
    std::string text = read.str();
    const std::size_t size = text.size();
    text.append(json::padding_bytes, ' ');
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
    if (argc < 2) {
        std::fprintf(stderr, "usage: admit_bench REVIEW.json...\n");
        return 2;
    }
    std::for_each(argv + 1, argv + argc, measure);
}
