// Parses a query about a running program: about an argument or the result of a function, its calls, its callers, or a
// variable at a line. Pure: nothing is looked up. The text may be hostile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::symbols {

struct Query {
  enum class Kind {
    argument,  // f(arg1), f(name): on entry into the function
    result,    // f:return
    calls,     // f:calls: the calls that it makes
    callers,   // f:callers: its callers and their locations
    variable,  // file.c:123:name: before the line is executed
  };
  // Members may be written `.member` or `->member`; both forms follow pointers.
  std::string text;  // as the user wrote it
  Kind kind = Kind::argument;
  std::string function;  // for argument, result, calls and callers
  std::string file;      // for variable: the end of the source file's path
  int line = 0;
  std::string name;                  // name of the argument or variable
  int number = 0;                    // "arg3": 3, unless a parameter has exactly this name; 0: none
  std::vector<std::string> members;  // members to follow
  // For callers: include the callers of callers, if frame pointers show them.
  bool outer = false;
  // For callers of inlined copies: include only copies that list_inlined() returns, because their entries are watched.
  bool of_watched = false;
  bool contents = false;  // `*name`: the object to which the value points
};

// The accepted forms, for messages and help texts.
inline constexpr std::string_view kQueryForms =
    "'f(arg1)', 'f(name)', 'f(name->member)', 'f(*name)', 'f:return', 'f:calls', 'f:callers', 'file.c:123:name'; for "
    "Java also 'org.x.C.m(name.field)', 'C.m(this.field)', 'C.m:return', 'C.m:callers', 'C.java:123:name'";

inline constexpr std::size_t kMostQueryBytes = 1024, kMostMembers = 6, kMostArguments = 32;

// Returns ErrorKind::usage that gives the position of the mistake and the accepted forms.
[[nodiscard]] Result<Query> parse_query(std::string_view text);

}  // namespace rose::symbols
