// Parses a query about a running program. It is about an argument or the result of a function, the function's calls or
// callers, or a variable at a line. Pure: nothing is looked up. The text may be hostile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::symbols {

struct Query {
  enum class Kind {
    argument,  // f(arg1), f(name): the value of an argument on entry to the function
    result,    // f:return
    calls,     // f:calls: the calls that the function makes
    callers,   // f:callers: the callers, and the places of the calls; f:return:callers: those to which f returns
    variable,  // file.c:123:name: the value before the line is executed
  };
  // Members may be written as `.member` or `->member`. Both forms follow pointers.
  std::string text;  // the query as the user wrote it
  Kind kind = Kind::argument;
  std::string function;  // for argument, result, calls and callers
  std::string file;      // for variable: the end of the source file's path
  int line = 0;
  std::string name;                  // name of the argument or variable
  int number = 0;                    // 3 for "arg3", unless a parameter has exactly this name; 0: no number
  std::vector<std::string> members;  // members to follow
  bool at_return = false;            // for callers: record, when the function returns, the callers to which it returns
  // For callers: include the callers of the callers, if frame pointers lead to them.
  bool outer = false;
  // For callers of inlined copies: include only the copies that list_inlined() returns, because only the entries of
  // those copies are watched.
  bool of_watched = false;
  bool contents = false;  // the query is `*name`, that is, about the object to which the value points
};

// The accepted forms, as they are shown in messages and help texts.
inline constexpr std::string_view kQueryForms =
    "'f(arg1)', 'f(name)', 'f(name->member)', 'f(*name)', 'f:return', 'f:calls', 'f:callers', 'file.c:123:name'; for "
    "Java also 'org.x.C.m(name.field)', 'C.m(this.field)', 'C.m:return', 'C.m:callers', 'C.java:123:name'";

inline constexpr std::size_t kMostQueryBytes = 1024, kMostMembers = 6, kMostArguments = 32;

// On a mistake, returns ErrorKind::usage with the position of the mistake and the accepted forms.
[[nodiscard]] Result<Query> parse_query(std::string_view text);

}  // namespace rose::symbols
