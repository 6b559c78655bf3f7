// What the symptom's own words say about functions. Private to explain.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::explain {

// Returns the functions whose names contain a word of `symptom` that few of `functions` contain, with that word: "the
// watch showed revision 3 after 2930" points to `(*watchableStore).Restore`. Bug reports locate files by common words
// in the same way (Zhou, Zhang and Lo, "Where Should the Bugs Be Fixed?", ICSE 2012), where rare words are more
// significant.
[[nodiscard]] std::map<std::string, std::string> named_by(std::string_view symptom,
                                                          const std::vector<std::string>& functions);

}  // namespace rose::explain
