// crd: the CustomResourceDefinitions, made from our schemas as YAML text. Pure; the same text every time.
//
// They carry types and descriptions only. A rule of any other kind would be judged by the API server before our
// webhook, and its error would then be the only one that the user sees. How a schema becomes structural:
//   no type, oneOf, "x-ossa-untyped": true         any value, kept as it is
//   an object without additionalProperties: false  unknown members are kept
//   type ["integer", "string"]                     x-kubernetes-int-or-string
//   "x-ossa-map-list-key": "name"                  a map list by that member
//   every other list                               atomic
// The API server wants the key of a map list `required`: the one rule in the CRD, and an error that comes from the API
// server alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ossa::schema {

enum class CrdKind : std::uint8_t { agent, tenant_quota };

struct CrdFile {
    std::string name;  // "agents.ossa.ai.yaml"
    std::string text;
};

std::string crd_yaml(CrdKind kind);
std::vector<CrdFile> crds();

}  // namespace ossa::schema
