#include "jvm/code_book.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/begins_with.h"
#include "base/folder.h"
#include "base/text.h"

namespace rose::jvm {
namespace {

constexpr std::size_t kMostCode = std::size_t{16} << 20;
constexpr std::size_t kMostMethods = 8192;  // at most this many methods of a node are kept
constexpr std::size_t kMostSites = 4096;    // at most this many calls of a method are kept
constexpr int kDeepest = 4;                 // calls are followed through at most this many methods

template <typename Number>
bool number_of(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

std::string clean(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return out;
}

}  // namespace

bool calls_system(std::string_view method) {
  using namespace std::string_view_literals;
  static constexpr std::array packages{"java.io."sv, "java.nio.channels."sv, "java.nio.file.Files"sv, "java.net."sv,
                                       "sun.nio.ch."sv};
  static constexpr std::array openers{"java.io.FileOutputStream.<init>"sv, "java.io.FileInputStream.<init>"sv,
                                      "java.io.FileWriter.<init>"sv,       "java.io.FileReader.<init>"sv,
                                      "java.io.RandomAccessFile.<init>"sv, "java.net.Socket.<init>"sv,
                                      "java.net.ServerSocket.<init>"sv};
  static constexpr std::array verbs{"write"sv,  "read"sv,     "force"sv,     "sync"sv,     "flush"sv,  "close"sv,
                                    "delete"sv, "rename"sv,   "move"sv,      "copy"sv,     "create"sv, "new"sv,
                                    "open"sv,   "truncate"sv, "setLength"sv, "transfer"sv, "accept"sv, "connect"sv,
                                    "bind"sv,   "send"sv,     "receive"sv,   "mkdir"sv,    "list"sv,   "print"sv,
                                    "append"sv, "lock"sv,     "tryLock"sv,   "size"sv,     "length"sv, "exists"sv};
  if (!begins_with_any(method, packages)) return false;
  if (std::find(openers.begin(), openers.end(), method) != openers.end()) return true;
  return begins_with_any(method.substr(method.rfind('.') + 1), verbs);
}

void CodeBook::learn(const std::string& node, const std::filesystem::path& folder) {
  const Result<OpenFolder> states = OpenFolder::open(folder);
  if (!states) return;
  for (const std::string& name : states->names())
    if (name.ends_with(".code"))
      if (const auto text = states->read(name, kMostCode)) learn_text(node, *text);
}

void CodeBook::learn_text(const std::string& node, std::string_view text) {
  const std::lock_guard lock(mutex_);
  Methods& methods = nodes_[node];
  // the method whose calls are read; nullptr: ignore them, because the method is already known
  std::vector<CallSite>* method = nullptr;
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() == 2 && fields[0] == "method") {
      method = nullptr;
      if (methods.size() >= kMostMethods) continue;
      const auto [at, fresh] = methods.try_emplace(clean(fields[1]));
      if (fresh) method = &at->second;
    } else if (fields.size() == 5 && fields[0] == "call" && method != nullptr && method->size() < kMostSites) {
      CallSite site;
      if (!number_of(fields[1], site.offset) || !number_of(fields[2], site.line)) continue;
      site.loop = fields[3] == "1";
      site.callee = clean(fields[4]);
      method->push_back(std::move(site));
    }
  }
}

std::map<std::string, std::string> CodeBook::texts() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> all;
  for (const auto& [node, methods] : nodes_) {
    std::string& text = all[node];
    for (const auto& [method, sites] : methods) {
      text += fmt::format("method\t{}\n", method);
      for (const CallSite& site : sites)
        text += fmt::format("call\t{}\t{}\t{}\t{}\n", site.offset, site.line, site.loop ? 1 : 0, site.callee);
    }
  }
  return all;
}

bool CodeBook::reaches_system(const Methods& methods, const std::string& callee, int depth) {
  if (calls_system(callee)) return true;
  if (depth >= kDeepest) return false;
  // Check all methods of that name, whatever their parameters are.
  for (auto at = methods.lower_bound(callee); at != methods.end() && at->first.starts_with(callee); ++at) {
    if (at->first.size() != callee.size() && at->first[callee.size()] != '(') continue;
    for (const CallSite& site : at->second) {
      if (reaches_system(methods, site.callee, depth + 1)) return true;
    }
  }
  return false;
}

std::vector<CodeBook::Place> CodeBook::places(const std::string& node, const std::string& method) const {
  const std::lock_guard lock(mutex_);
  std::vector<Place> found;
  const auto own = nodes_.find(node);
  if (own == nodes_.end()) return found;
  const auto at = own->second.find(method);
  if (at == own->second.end()) return found;
  for (const CallSite& site : at->second) found.push_back({site, reaches_system(own->second, site.callee, 0)});
  return found;
}

bool CodeBook::contains(const std::string& node, const std::string& method) const {
  const std::lock_guard lock(mutex_);
  const auto own = nodes_.find(node);
  return own != nodes_.end() && own->second.contains(method);
}

}  // namespace rose::jvm
