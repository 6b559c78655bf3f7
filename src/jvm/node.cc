#include "jvm/node.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "jvm/names.h"

namespace rose::jvm {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool names_java(std::string_view word) {
  const std::string_view base = base_name(word);
  return base == "java" || word.ends_with(".jar") || word == "-cp" || word == "-classpath" || word == "--class-path";
}

bool has_package(std::string_view name) {
  name = leaving_of(name).method;
  return looks_like_java(name) &&
         std::count(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(name.size(), name.find('('))),
                    '.') >= 2;
}

bool is_wrapper(std::string_view program) {
  static const std::set<std::string_view> known = {"sh",      "bash",   "dash",      "ksh",     "zsh",     "busybox",
                                                   "env",     "setsid", "nohup",     "nice",    "ionice",  "go",
                                                   "taskset", "chrt",   "su",        "sudo",    "runuser", "setpriv",
                                                   "chpst",   "tini",   "dumb-init", "timeout", "stdbuf",  "numactl"};
  return known.contains(base_name(program));
}

bool is_script(const std::string& program) {
  std::ifstream file(program, std::ios::binary);
  char begin[2] = {};
  return file.read(begin, 2) && begin[0] == '#' && begin[1] == '!';
}

}  // namespace

bool launches(const std::string& program) { return is_wrapper(program) || is_script(program); }

bool is_launcher(const config::Node& node) {
  return node.command.empty() || is_wrapper(node.command.front()) ||
         std::any_of(node.binaries.begin(), node.binaries.end(), is_script);
}

bool runs_java(const config::Node& node, std::string_view name) {
  if (std::any_of(node.command.begin(), node.command.end(), names_java)) return true;
  if (std::any_of(node.sources.begin(), node.sources.end(), is_jvm_source)) return true;
  const auto of_java = [](const std::string& binary) {
    std::error_code error;
    return base_name(binary) == "java" || binary.ends_with(".jar") || binary.ends_with(".class") ||
           std::filesystem::is_directory(binary, error);
  };
  if (std::any_of(node.binaries.begin(), node.binaries.end(), of_java)) return true;
  // If `binary` names several programs, or another one than the command, functions are looked up in these programs, and
  // not in a JVM that the command may start.
  if (node.binaries.size() > 1) return false;
  if (!node.binaries.empty() &&
      (node.command.empty() || base_name(node.binaries.front()) != base_name(node.command.front())))
    return false;
  return is_launcher(node) &&
         (has_package(name) || std::any_of(node.functions.begin(), node.functions.end(), has_package));
}

bool may_run_java(const config::Node& node) { return runs_java(node, "any.package.Name.method"); }

bool is_method(const config::Node& node, std::string_view name) {
  return looks_like_java(name) && runs_java(node, name);
}

bool may_be_method(const config::Node& node, std::string_view name) {
  return looks_like_java(name) && (runs_java(node, name) || runs_java(node, "a.package." + std::string(name)));
}

Names native_of(const config::Node& node) {
  const bool java = runs_java(node);
  Names names;
  std::copy_if(node.functions.begin(), node.functions.end(), std::back_inserter(names.functions),
               [java](const std::string& function) { return !java || !looks_like_java(function); });
  std::copy_if(node.sources.begin(), node.sources.end(), std::back_inserter(names.sources),
               [java](const std::string& source) { return !java || !is_jvm_source(source); });
  return names;
}

Names methods_of(const config::Node& node) {
  Names names;
  if (!runs_java(node)) return names;
  std::copy_if(node.functions.begin(), node.functions.end(), std::back_inserter(names.functions), looks_like_java);
  std::copy_if(node.sources.begin(), node.sources.end(), std::back_inserter(names.sources), is_jvm_source);
  return names;
}

}  // namespace rose::jvm
