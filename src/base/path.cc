#include "base/path.h"

#include <algorithm>
#include <vector>

namespace rose {

std::string resolve_dots(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!absolute) {
      parts.push_back(part);
    }
  }
  std::string result;
  for (const auto part : parts) {
    if (absolute || !result.empty()) result += '/';
    result += part;
  }
  return result.empty() && absolute ? "/" : result;
}

std::string join_path(std::string_view base, std::string_view path) {
  std::string whole = "/";
  if (!path.starts_with('/')) whole.append(base).append("/");
  return resolve_dots(whole.append(path));
}

std::string_view extension_of(std::string_view path) {
  path.remove_prefix(std::min(path.rfind('/') + 1, path.size()));
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : path.substr(dot);
}

std::string unix_text(std::string_view sun_path) {
  std::string text = "unix:";
  if (!sun_path.empty() && sun_path.front() == '\0') {
    text += '@';
    sun_path.remove_prefix(1);
  }
  return text.append(sun_path.substr(0, sun_path.find('\0')));
}

std::string netlink_text(std::uint64_t protocol) { return "netlink:" + std::to_string(protocol); }

}  // namespace rose
