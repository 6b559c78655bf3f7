// What logs tell, as a trace: the survey's run without faults on the incident's time line, and in it the failures that messages
// speak of or that may stand behind them. Sites and instances come from that run (ANDURIL, SOSP'24, section 5.2.3: its log and
// the failure's are aligned, and what happened between two messages of the one is put between the same two of the other).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "diagnose/diagnose.h"
#include "logs/evidence.h"
#include "profile/profile.h"
#include "trace/event.h"

namespace rose::diagnose {

// How much less is believed of a call that no message names, and of the nearest one.
inline constexpr double kGuessed = 0.15;
inline constexpr std::size_t kMostGuesses = 40;  // of one node
inline constexpr std::size_t kMostPaths = 6;     // that a message may mean which names none

// `control`: of a run without faults; nullptr when none was made (a plan): then only what messages name is there.
// Adds to `inputs`: a trace, what is known of its events (Inputs::said) and the observables.
void add_logs(Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control);

// The nodes of the deployment, by the names and addresses that messages may use for them.
[[nodiscard]] std::vector<logs::NodeName> node_names_in_logs(const config::Config& config, const std::map<std::string, std::string>& host_to_node);

// Which node lines of a log mean that name this host: "web-1" and "shop_web_1" of Compose, "db-0/postgres" of kubectl, "n1.example.com",
// an address, or what --map tells; "" none.
[[nodiscard]] std::string node_of_host(std::string_view host, const config::Config& config, const std::map<std::string, std::string>& host_to_node);

}  // namespace rose::diagnose
