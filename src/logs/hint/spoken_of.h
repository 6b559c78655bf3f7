// Which node a message of another one speaks of: by its name, an address, or what it calls itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "logs/hint/hint.h"
#include "logs/meaning.h"

namespace rose::logs {

// Each also with what it calls itself in its log ("local-member-id":"d2e0757e399d7e99"): others call it so when they
// miss it.
[[nodiscard]] std::vector<NodeName> with_own_names(std::vector<NodeName> names, const Logs& logs);

// `by`: the node that says `text`; "" none is spoken of.
[[nodiscard]] std::string spoken_of(const std::vector<NodeName>& names, std::string_view by, const Meaning& meaning,
                                    std::string_view text);

// Whether `text`, which follows a verb, begins with another node than `by`: " host n2".
[[nodiscard]] bool is_object(const std::vector<NodeName>& names, std::string_view by, std::string_view text);

}  // namespace rose::logs
