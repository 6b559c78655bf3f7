// Determines which node a message mentions: by name, by address, by number, or by the id that the node uses for itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "logs/hint/hint.h"
#include "logs/meaning.h"

namespace rose::logs {

// Adds to each node the ids and endpoints that its log states as its own ("local-member-id":"d2e0757e399d7e99"),
// because other nodes use these in their messages.
[[nodiscard]] std::vector<NodeName> with_stated_names(std::vector<NodeName> names, const Logs& logs);

// Adds to each node the words by which messages mention it by number ("Node 24").
[[nodiscard]] std::vector<NodeName> with_numbers(std::vector<NodeName> names, const Logs& logs);

// The node, other than `by`, that the message is about; "" if the message mentions none. `by`: the node that logs
// `text`. `meaning`: what the message reports.
[[nodiscard]] std::string mentioned_node(const std::vector<NodeName>& names, std::string_view by,
                                         const Meaning& meaning, std::string_view text);

// `text` is what follows a verb. True if it begins with the verb's object, and this object is a node other than `by`:
// " host n2".
[[nodiscard]] bool is_object(const std::vector<NodeName>& names, std::string_view by, std::string_view text);

}  // namespace rose::logs
