#include "jvm/application.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "jvm/jar.h"

namespace rose::jvm {
namespace {

constexpr int kPackageParts = 3;
bool is_option_with_value(std::string_view word) {
  static const std::set<std::string_view> known = {"-cp",
                                                   "-classpath",
                                                   "--class-path",
                                                   "-p",
                                                   "--module-path",
                                                   "--add-modules",
                                                   "--add-reads",
                                                   "--add-exports",
                                                   "--add-opens",
                                                   "--limit-modules",
                                                   "--upgrade-module-path",
                                                   "--patch-module",
                                                   "--enable-native-access"};
  return known.contains(word);
}

struct Called {
  std::string class_path = ".", main, jar;
};

// The main class in the value of --module, such as "com.acme/com.acme.Main".
std::string class_of_module(const std::string& word) {
  const std::size_t slash = word.find('/');
  return slash == std::string::npos ? "" : word.substr(slash + 1);
}

Called read_command(const std::vector<std::string>& command) {
  Called called;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.starts_with("@")) return called;
    constexpr std::string_view kModule = "--module=";
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if (word == "-jar") {
      called.jar = next;
      return called;
    }
    const bool is_module = word == "-m" || word == "--module";
    if (is_module || word.starts_with(kModule)) {
      called.main = class_of_module(is_module ? next : word.substr(kModule.size()));
      return called;
    }
    if (is_option_with_value(word)) {
      if (++i < command.size() && (word == "-cp" || word == "-classpath" || word == "--class-path"))
        called.class_path = command[i];
      continue;
    }
    constexpr std::string_view kLong = "--class-path=";
    if (word.starts_with(kLong)) called.class_path = word.substr(kLong.size());
    if (word.starts_with("-")) continue;
    called.main = word;
    std::replace(called.main.begin(), called.main.end(), '/', '.');
    return called;
  }
  return called;
}

std::vector<std::string> classes_beside(const std::string& main, const std::string& class_path,
                                        const std::filesystem::path& folder) {
  for (const std::string& entry : split(class_path, ':')) {
    const std::filesystem::path place = (folder / (entry.empty() ? "." : entry)).lexically_normal();
    std::error_code error;
    if (!std::filesystem::is_regular_file(place / (main + ".class"), error)) continue;
    std::vector<std::string> out;
    for (const auto& one : std::filesystem::directory_iterator(place, error)) {
      if (one.path().extension() == ".class" && out.size() < kMostClasses)
        out.push_back(one.path().stem().string() + ".*");
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  return {};
}

}  // namespace

std::vector<std::string> own_methods(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  if (command.empty()) return {};
  const std::string_view program = command.front();
  if (program.substr(program.rfind('/') + 1) != "java") return {};
  Called called = read_command(command);
  std::vector<std::string> in_jar;
  if (!called.jar.empty()) {
    const std::optional<Jar> jar = read_jar(folder / called.jar);
    if (!jar) return {};
    called.main = jar->main;
    for (const std::string& name : jar->classes) in_jar.push_back(name + ".*");
  }
  if (called.main.empty() || called.main.find("${") != std::string::npos) return {};
  std::size_t end = called.main.rfind('.');
  if (end == std::string::npos)
    return called.jar.empty() ? classes_beside(called.main, called.class_path, folder) : in_jar;
  std::string package = called.main.substr(0, end);
  std::size_t parts = 1;
  for (std::size_t at = package.find('.'); at != std::string::npos; at = package.find('.', at + 1), ++parts) {
    if (parts == kPackageParts) {
      package.resize(at);
      break;
    }
  }
  return {package + ".*"};
}

}  // namespace rose::jvm
