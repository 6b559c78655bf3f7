// Finds functions that words of the symptom point to. Private to explain.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::explain {

struct Named {
  std::string word;  // of the symptom
  // The word is in the function's own name. Otherwise it is only in the name of its type or package, which often names
  // a role in the system (replica, leader, client), as symptoms do.
  bool own = false;
};

// Returns each function whose name contains a word of `symptom` that only few of `functions` contain: "the watch showed
// revision 3 after 2930" points to `(*watchableStore).Restore` by the word "watch". Files have been located in the same
// way, by the words that they share with a bug report, where rare words are more significant (Zhou, Zhang and Lo,
// "Where Should the Bugs Be Fixed?", ICSE 2012).
[[nodiscard]] std::map<std::string, Named> named_by(std::string_view symptom,
                                                    const std::vector<std::string>& functions);

}  // namespace rose::explain
