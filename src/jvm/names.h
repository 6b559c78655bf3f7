// How the name of a Java method may be spelled by users and in schedules. rose and its agent inside the JVM share this
// code, so it needs only headers of the standard library.
//
//   org.x.Learner.syncWithLeader              methods of the class with that name, without inherited ones
//   Learner.syncWithLeader                    leading components may be omitted
//   org.x.Learner.syncWithLeader(long,List)   parameters are optional, and so are their packages
//   org.x.Learner.*, *Snap*.save*             '*' matches any text, '?' one character; the JDK's classes match only
//                                             patterns that begin with one of its packages
//   Outer.Inner.m, Outer$Inner.m              '.' and '$' are equivalent, and so are Scala's Foo.m and Foo$.m
//   Foo.Foo, Foo.<init>, Foo.<clinit>         constructors, static initialisers
//   Foo.lambda$run$0                          the code of a lambda
//
// A method that only forwards calls to another one (a compiler's bridge method, Scala's static forwarder) is not
// matched by its name; the other method is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/leaving.h"

namespace rose::jvm {

// Method flags as in class files.
enum MethodFlags : std::uint32_t {
  kStatic = 0x8,
  kBridge = 0x40,
  kNative = 0x100,
  kAbstract = 0x400,
  kSynthetic = 0x1000,
};

struct Method {
  std::string_view class_name;  // "org.x.Outer$Inner"
  std::string_view name;        // "m", "<init>"
  std::string_view descriptor;  // "(JLjava/util/List;)V"
  std::string_view source;      // "Outer.java"; "" if unknown
  std::uint32_t flags = 0;
};

class NamePattern {
 public:
  // A pattern without a wildcard must name the class, too: "Learner.sync".
  explicit NamePattern(std::string_view text);

  [[nodiscard]] bool matches(const Method& method) const;
  // A fast filter. If it returns false, no method of this class can match.
  [[nodiscard]] bool may_be_in(std::string_view class_name) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool glob() const { return glob_; }

 private:
  std::string text_;  // the pattern as given
  std::string name_;  // without parameters, with '$' replaced by '.'
  std::vector<std::string> parameters_;
  bool has_parameters_ = false;
  bool glob_ = false;
  bool of_jdk_ = false;  // the pattern begins with the name of a package of the JDK
};

// True if the class has that name. Leading components may be omitted.
[[nodiscard]] bool is_of_class(std::string_view class_name, std::string_view wanted);

// True if this could be the name of a Java method, or of an exception that leaves a Java method (base/leaving.h):
// "a.b.C.m", "Foo$Bar.<init>(int)", "org.x.*", but not "Raft::apply", "main", "(*raft).step".
[[nodiscard]] bool looks_like_java(std::string_view pattern);
// True for source files of JVM languages: Learner.java, Learner.kt, ...
[[nodiscard]] bool is_jvm_source(std::string_view file);

// "(JLjava/util/List;[B)V" gives "(long,List,byte[])"; "" for other texts.
[[nodiscard]] std::string parameters_of(std::string_view descriptor);
// "Lorg/x/Outer$Inner;" gives "org.x.Outer$Inner".
[[nodiscard]] std::string class_of_signature(std::string_view signature);

}  // namespace rose::jvm
