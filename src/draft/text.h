// The draft as rose.toml's text: what is known as keys, where it comes from as comments, what only the user knows as
// questions. Pure.
#pragma once

#include <string>
#include <vector>

#include "draft/draft.h"
#include "draft/node.h"
#include "draft/systems.h"

namespace rose::draft {

// Commands that start and end nodes with `attach`.
struct Surroundings {
  std::string network = "netns";
  std::string compose;             // a Compose file, whose services are the nodes; "" none
  std::string engine;              // of nodes in containers; "" whichever there is
  std::vector<std::string> about;  // above [deployment]
  std::vector<std::string> setup;  // a command; empty none
  std::vector<std::string> teardown;
  std::vector<std::string> next;  // hints below
};

// Example scripts, when no system of the nodes gives one.
struct Asked {
  Example example;
  std::string system;  // whose example it is: "Redis"
};

[[nodiscard]] Draft write_draft(const std::vector<std::string>& origins, const std::vector<NodeDraft>& nodes,
                                const Surroundings& around, const Asked& asked, const Host& host);

// The folders that nodes want made before they start, as a setup command; empty none.
[[nodiscard]] std::vector<std::string> folder_setup(const std::vector<NodeDraft>& nodes);

// An example that fits the nodes: of the first whose system has one and that follows nobody.
[[nodiscard]] Asked example_for(const std::vector<NodeDraft>& nodes);

}  // namespace rose::draft
