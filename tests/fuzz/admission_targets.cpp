#include "conformance/mutate.hpp"
#include "engine/admission.hpp"
#include "fuzz/patch.hpp"
#include "fuzz/targets.hpp"
#include "kube/types/admission.hpp"

namespace ossa::fuzz {
namespace {

using engine::Door;
using testing::Tree;

struct Answered {
    engine::Decision decision;
    std::string text;
};

Answered ask(Door door, std::string_view body) {
    static engine::Scratch scratch;
    Answered out;
    out.decision = engine::admit(door, body, json::Padding::none, {}, {}, scratch, out.text);
    return out;
}

std::size_t length_in_utf8(std::string_view text) {
    return schema::code_points(text);
}

// What the API server asks of an answer, and what api.md promises on top.
void check_answer(const Answered& answered, std::string_view uid) {
    const json::Limits limits{.bytes_max = SIZE_MAX, .depth_max = 300, .values_max = 1U << 22};
    const auto answer = json::Document::from(answered.text, limits);
    demand(answer.has_value(), "an answer is JSON", answered.text);
    const json::Value root = answer->root();
    demand(root.at("kind").string_or("") == "AdmissionReview", "an answer is an AdmissionReview", answered.text);
    demand(root.at("apiVersion").string_or("") == "admission.k8s.io/v1", "of version v1", answered.text);
    const json::Value response = root.at("response");
    demand(response.at("uid").is_string(), "an answer has a uid", answered.text);
    if (!uid.empty()) {
        demand(response.at("uid").string_or("") == uid, "an answer echoes the uid", answered.text);
    }
    const bool allowed = response.at("allowed").bool_or(false);
    demand(response.at("allowed").is_boolean(), "an answer allows or denies", answered.text);
    demand(allowed == (answered.decision.verdict == engine::Verdict::allowed), "answer and decision agree",
           answered.text);
    if (!allowed) {
        const json::Value status = response.at("status");
        demand(status.at("code").int64_or(0) >= 400, "a denial has a code", answered.text);
        demand(!status.at("message").string_or("").empty(), "a denial says why", answered.text);
        demand(!response.at("patch").exists(), "a denial changes nothing", answered.text);
    }
    std::size_t characters = 0;
    for (const json::Value warning : response.at("warnings").elements()) {
        const std::size_t length = length_in_utf8(warning.string_or(""));
        demand(length <= 256, "a warning keeps to the API server's limit", answered.text);
        characters += length;
    }
    demand(characters <= 4096, "all warnings keep to the API server's limit", answered.text);
}

Tree* child(Tree& tree, std::string_view name) {
    for (auto& [key, value] : tree.children) {
        if (key == name) {
            return &value;
        }
    }
    return nullptr;
}

void check_patch(std::string_view body, const Answered& answered) {
    const auto answer = json::Document::from(answered.text);
    const json::Value response = answer->root().at("response");
    if (!response.at("patch").exists()) {
        return;
    }
    demand(response.at("patchType").string_or("") == "JSONPatch", "a patch names its type", answered.text);
    const std::string text = from_base64(response.at("patch").string_or(""));
    const auto patch = json::Document::from(text, {.bytes_max = SIZE_MAX, .depth_max = 256, .values_max = 1U << 22});
    demand(patch.has_value(), "a patch is JSON", text);
    demand(!patch->root().empty(), "a patch changes something", text);

    const auto before = json::Document::from(body);
    Tree review = Tree::of(before->root());
    Tree* const request = child(review, "request");
    Tree* const object = request == nullptr ? nullptr : child(*request, "object");
    demand(object != nullptr, "a patch needs an object", text);
    apply_patch(*object, patch->root());
    const std::string after = review.print();
    const Answered again = ask(Door::mutate_agent, after);
    demand(again.decision.verdict == engine::Verdict::allowed, "a defaulted object is admitted", after);
    demand(!again.decision.patched && again.text.find("\"patch\"") == std::string::npos,
           "a defaulted object is not defaulted again", again.text);
}

}  // namespace

void admission_review(std::string_view bytes) {
    std::string uid;
    if (const auto document = json::Document::from(bytes)) {
        if (const auto request = kube::decode_admission_review(document->root())) {
            uid = request->uid;
        }
    }
    for (const Door door :
         {Door::mutate_agent, Door::validate_agent, Door::validate_scale, Door::validate_tenant_quota}) {
        const Answered answered = ask(door, bytes);
        check_answer(answered, uid);
        const Answered again = ask(door, bytes);
        demand(again.text == answered.text, "the same review has the same answer", answered.text + "\n" + again.text);
        if (door == Door::mutate_agent && answered.decision.verdict == engine::Verdict::allowed) {
            check_patch(bytes, answered);
        }
    }
    for (const auto& refuse : {engine::refuse_late, engine::fail_closed}) {
        Answered answered;
        answered.decision = refuse(bytes, answered.text);
        check_answer(answered, uid);
    }
}

}  // namespace ossa::fuzz
