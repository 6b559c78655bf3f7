#include "draft/manifest_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace rose::draft {
namespace {

// Settings that a run applies, or that mean nothing in it: where pods are placed, how images are fetched, accounts.
constexpr std::string_view kKnownOfPod[] = {"containers",
                                            "initContainers",
                                            "ephemeralContainers",
                                            "volumes",
                                            "securityContext",
                                            "subdomain",
                                            "hostNetwork",
                                            "terminationGracePeriodSeconds",
                                            "serviceAccount",
                                            "serviceAccountName",
                                            "automountServiceAccountToken",
                                            "enableServiceLinks",
                                            "affinity",
                                            "tolerations",
                                            "nodeSelector",
                                            "nodeName",
                                            "topologySpreadConstraints",
                                            "schedulerName",
                                            "schedulingGates",
                                            "priority",
                                            "priorityClassName",
                                            "preemptionPolicy",
                                            "imagePullSecrets",
                                            "restartPolicy",
                                            "dnsPolicy",
                                            "activeDeadlineSeconds",
                                            "readinessGates",
                                            "overhead",
                                            "os",
                                            "resources",
                                            "resourceClaims",
                                            "hostUsers",
                                            "setHostnameAsFQDN"};
constexpr std::string_view kKnownOfContainer[] = {"name",
                                                  "image",
                                                  "imagePullPolicy",
                                                  "command",
                                                  "args",
                                                  "workingDir",
                                                  "env",
                                                  "envFrom",
                                                  "ports",
                                                  "volumeMounts",
                                                  "readinessProbe",
                                                  "startupProbe",
                                                  "livenessProbe",
                                                  "securityContext",
                                                  "resources",
                                                  "terminationMessagePath",
                                                  "terminationMessagePolicy",
                                                  "stdin",
                                                  "stdinOnce",
                                                  "tty",
                                                  "resizePolicy"};

}  // namespace

const Yaml& at(const Yaml& value, std::string_view path) {
  static const Yaml nothing;
  const Yaml* found = &value;
  for (const std::string& key : split(path, '.')) {
    found = found->is_map() ? found->find(key) : nullptr;
    if (found == nullptr) return nothing;
  }
  return *found;
}

std::string text_at(const Yaml& value, std::string_view path) {
  const Yaml& found = at(value, path);
  return found.is_scalar() ? found.text : "";
}

std::optional<double> quantity(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 11> kUnits = {{{"Ki", 1024.0},
                                                                           {"Mi", 1048576.0},
                                                                           {"Gi", 1073741824.0},
                                                                           {"Ti", 1099511627776.0},
                                                                           {"n", 1e-9},
                                                                           {"u", 1e-6},
                                                                           {"m", 1e-3},
                                                                           {"k", 1e3},
                                                                           {"M", 1e6},
                                                                           {"G", 1e9},
                                                                           {"T", 1e12}}};
  double factor = 1;
  for (const auto& [unit, value] : kUnits)
    if (text.ends_with(unit)) {
      factor = value;
      text.remove_suffix(unit.size());
      break;
    }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value <= 0 || value * factor > 1e18)
    return std::nullopt;
  return value * factor;
}

std::uint64_t amount(std::string_view text) {
  const auto value = quantity(text);
  return value ? static_cast<std::uint64_t>(*value) : 0;
}

std::optional<std::string> resource_value(const Yaml& container, const Yaml& reference) {
  std::string name = text_at(reference, "resource");
  const Yaml& resources = at(container, "resources");
  auto value = quantity(text_at(resources, name));
  if (constexpr std::string_view kRequests = "requests."; !value && name.starts_with(kRequests))
    value = quantity(text_at(resources, "limits." + name.substr(kRequests.size())));
  if (!value) return std::nullopt;
  const double divisor = quantity(text_at(reference, "divisor")).value_or(1);
  const double parts = std::ceil(*value / divisor - 1e-9);
  if (parts > 1e18) return std::nullopt;
  return std::to_string(static_cast<std::uint64_t>(parts));
}

std::string decoded(std::string_view text) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned value = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = kLetters.find(c);
    if (digit == std::string_view::npos) continue;
    value = (value << 6 | static_cast<unsigned>(digit)) & 0xffffU;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(value >> bits & 0xffU);
  }
  return out;
}

std::string without_definitions(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t document = 0;  // where the document begins in `out`
  bool definition = false;
  const auto end_document = [&] {
    if (definition) {
      const auto lines = std::count(out.begin() + static_cast<std::ptrdiff_t>(document), out.end(), '\n');
      out.resize(document);
      out.append(static_cast<std::size_t>(lines), '\n');
    }
    definition = false;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = text.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("---")) {
      end_document();
      out += line;
      document = out.size();
      continue;
    }
    definition = definition || line.starts_with("kind: CustomResourceDefinition");
    out += line;
  }
  end_document();
  return out;
}

std::vector<std::string> left_out(const Yaml& pod, const Yaml& container) {
  std::vector<std::string> all;
  const auto add = [&all](const Yaml& map, const auto& known) {
    for (const auto& [key, value] : map.members) {
      if (std::find(std::begin(known), std::end(known), key) != std::end(known) || value.kind == Yaml::Kind::null)
        continue;
      if (value.is_scalar() && value.text == "false") continue;
      if (key != "lifecycle") all.push_back(key);
      else
        for (const auto& [hook, unused] : value.members) all.push_back("lifecycle." + hook);
    }
  };
  add(pod, kKnownOfPod);
  add(container, kKnownOfContainer);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace rose::draft
