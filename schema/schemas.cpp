#include "schema/schemas.hpp"

#include <string>
#include <utility>

#include "base/bug.hpp"

namespace ossa::embedded {
extern const std::string_view ossa_schema;
extern const std::string_view agent_patch;
extern const std::string_view agent_status_schema;
extern const std::string_view tenant_quota_schema;
extern const std::string_view tenant_quota_status_schema;
extern const std::string_view draft_07_metaschema;
}  // namespace ossa::embedded

namespace ossa::schema {
namespace {

json::Document parsed(std::string_view text) {
    Result<json::Document> document = json::Document::from(text);
    OSSA_BUG_IF(!document, "an embedded schema is no JSON");
    return std::move(*document);
}

Plan compiled(json::Value schema) {
    Result<Plan> plan = Plan::compile(schema);
    OSSA_BUG_IF(!plan, plan.error().message().c_str());
    return std::move(*plan);
}

json::Document merged_agent_spec() {
    const json::Document patch = parsed(embedded::agent_patch);
    return parsed(json::merge_patch(ossa_schema(), patch.root()));
}

}  // namespace

std::string_view ossa_schema_text() noexcept {
    return embedded::ossa_schema;
}

json::Value ossa_schema() {
    static const json::Document document = parsed(embedded::ossa_schema);
    return document.root();
}

json::Value agent_spec_schema() {
    static const json::Document document = merged_agent_spec();
    return document.root();
}

json::Value agent_status_schema() {
    static const json::Document document = parsed(embedded::agent_status_schema);
    return document.root();
}

json::Value tenant_quota_spec_schema() {
    static const json::Document document = parsed(embedded::tenant_quota_schema);
    return document.root();
}

json::Value tenant_quota_status_schema() {
    static const json::Document document = parsed(embedded::tenant_quota_status_schema);
    return document.root();
}

json::Value metaschema() {
    static const json::Document document = parsed(embedded::draft_07_metaschema);
    return document.root();
}

const Plan& ossa_plan() {
    static const Plan& plan = *new Plan(compiled(ossa_schema()));  // for ever
    return plan;
}

const Plan& agent_spec_plan() {
    static const Plan& plan = *new Plan(compiled(agent_spec_schema()));  // for ever
    return plan;
}

const Plan& tenant_quota_spec_plan() {
    static const Plan& plan = *new Plan(compiled(tenant_quota_spec_schema()));  // for ever
    return plan;
}

const Plan& metaschema_plan() {
    static const Plan& plan = *new Plan(compiled(metaschema()));  // for ever
    return plan;
}

void warm_up() {
    agent_spec_plan();
    tenant_quota_spec_plan();
    metaschema_plan();
}

}  // namespace ossa::schema
