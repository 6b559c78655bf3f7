// Formats the draft as rose.toml: known values as keys, their origin as comments, unknown values as questions. Pure.
#pragma once

#include <string>
#include <vector>

#include "draft/draft.h"
#include "draft/node.h"
#include "draft/systems.h"

namespace rose::draft {

// Settings that concern the whole deployment.
struct Surroundings {
  std::string network = "netns";
  std::vector<std::string> compose;  // Compose files whose services are the nodes
  std::vector<std::string> compose_profiles;
  Variables compose_env;
  std::string engine;               // engine for nodes in containers; "": any
  std::vector<std::string> about;   // comment above [deployment]
  std::vector<std::string> doubts;  // what the user should check
  std::vector<std::string> setup;   // a command; empty if none
  std::vector<std::string> teardown;
  std::vector<std::string> form;
  std::vector<std::string> next;  // hints for the next steps, at the end of the draft
};

// Example scripts for the workload and the oracle. If they are empty, write_draft() writes generic examples.
struct ValueQueries {
  Example example;
  std::string system;  // the system for which it was written: "Redis"
};

[[nodiscard]] Draft write_draft(const std::vector<std::string>& origins, const std::vector<NodeDraft>& nodes,
                                const Surroundings& around, const ValueQueries& asked, const Host& host);

// A setup command that creates the folders that nodes need before they start; empty if none.
[[nodiscard]] std::vector<std::string> folder_setup(const std::vector<NodeDraft>& nodes);

// An example for the first node whose system has one and which is not a replica.
[[nodiscard]] ValueQueries example_for(const std::vector<NodeDraft>& nodes);

}  // namespace rose::draft
