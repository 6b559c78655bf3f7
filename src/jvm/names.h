// How a Java method's name may be spelt, by people and in schedules: one reading for rose and for its agent inside the
// JVM. Needs nothing but the standard library's headers, since the agent has no more.
//
//   org.x.Learner.syncWithLeader            a class's methods of that name, inherited ones not
//   Learner.syncWithLeader                  the front may be left out at any '.'
//   org.x.Learner.syncWithLeader(long,List) parameters are optional, and so are their packages
//   org.x.Learner.*   *Snap*.save*          '*' any text, '?' one character; of the JDK's classes only where it begins
//   as their packages do Outer.Inner.m, Outer$Inner.m            '.' and '$' are one; so are Scala's Foo.m and Foo$.m
//   Foo.Foo, Foo.<init>, Foo.<clinit>       constructors, static initialisers
//   Foo.lambda$run$0                        the code of a lambda
// Of two methods of which one only calls the other (a compiler's bridge, Scala's static forwarder) the other is meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/leaving.h"

namespace rose::jvm {

// Flags of methods, as in class files.
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
  std::string_view source;      // "Outer.java"; "" unknown
  std::uint32_t flags = 0;
};

class NamePattern {
 public:
  explicit NamePattern(std::string_view text);

  [[nodiscard]] bool matches(const Method& method) const;
  // A quick no for most classes: could any method of this one match?
  [[nodiscard]] bool may_be_in(std::string_view class_name) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool glob() const { return glob_; }

 private:
  std::string text_;  // as it was given
  std::string name_;  // without parameters, '$' as '.'
  std::vector<std::string> parameters_;
  bool has_parameters_ = false;
  bool glob_ = false;
  bool of_jdk_ = false;  // it begins as a package of the JDK's does
};

// Is the class of that name? The front may be left out at any '.'.
[[nodiscard]] bool is_of_class(std::string_view class_name, std::string_view wanted);

// Could this be the name of a Java method, or of an exception that leaves one (base/leaving.h)? "a.b.C.m",
// "Foo$Bar.<init>(int)", "org.x.*"; not "Raft::apply", "main", "(*raft).step".
[[nodiscard]] bool looks_like_java(std::string_view pattern);
// Learner.java, Learner.kt, ...
[[nodiscard]] bool is_jvm_source(std::string_view file);

// "(JLjava/util/List;[B)V" -> "(long,List,byte[])"; "" when it is none.
[[nodiscard]] std::string parameters_of(std::string_view descriptor);
// "Lorg/x/Outer$Inner;" -> "org.x.Outer$Inner".
[[nodiscard]] std::string class_of_signature(std::string_view signature);

}  // namespace rose::jvm
