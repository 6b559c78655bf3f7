// Parts of the reader of manifests that need no other object: amounts, encoded text, and what a run leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.h"

namespace rose::draft {

// A published manifest may be much larger than a Compose file, because definitions of resources are part of it.
inline constexpr std::size_t kMostManifestBytes = std::size_t{16} << 20;

// The value at a path such as "spec.template.spec"; an empty one if there is none.
[[nodiscard]] const Yaml& at(const Yaml& value, std::string_view path);
[[nodiscard]] std::string text_at(const Yaml& value, std::string_view path);

// Converts a quantity of Kubernetes such as "512Mi" or "250m". Nothing if the text is none.
[[nodiscard]] std::optional<double> quantity(std::string_view text);
// Converts an amount such as "512Mi" to bytes. Returns 0 if the text is not an amount.
[[nodiscard]] std::uint64_t amount(std::string_view text);

// The value of a `resourceFieldRef` of the container: a limit or request, divided by the divisor and rounded up. A
// request that is not set equals the limit. Nothing if neither is set; in a cluster, it is then that of the machine.
[[nodiscard]] std::optional<std::string> resource_value(const Yaml& container, const Yaml& reference);

// Decodes base64.
[[nodiscard]] std::string decoded(std::string_view text);

// The text without the documents that define resources, which may have several MB and mean nothing in a run. Their
// lines remain, but are empty, so that the line numbers of errors are right.
[[nodiscard]] std::string without_definitions(std::string_view text);

// The settings of the pod and of the container that change what it does in a cluster, and that a run leaves out.
[[nodiscard]] std::vector<std::string> left_out(const Yaml& pod, const Yaml& container);

}  // namespace rose::draft
