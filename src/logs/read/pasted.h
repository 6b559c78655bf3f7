// Recognises the lines of a pasted log that no program wrote: headings, marks of omitted lines and shell prompts.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rose::logs {

// True for marks of omitted lines ("[...]", "..."), and for the fences around code in a report.
[[nodiscard]] bool is_omission(std::string_view line);

// True for a shell prompt before pasted output: "$ grep ...", "[root@n1 tmp]# grep ...", "user@n1:~$ kubectl ...".
[[nodiscard]] bool is_prompt(std::string_view line);

// Reads a heading, which names the node that wrote the lines after it: "==> n1.log <==" of `tail -f`, "n1:", "## node
// n1", "**n1 logs**" in a report. Returns the node's name; "" if the line is no heading. `names_node`: true for a word
// that names a node.
[[nodiscard]] std::string node_in_heading(std::string_view line,
                                          const std::function<bool(std::string_view)>& names_node);

}  // namespace rose::logs
