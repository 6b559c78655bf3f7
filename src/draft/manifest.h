// Kubernetes manifests, in published form and as `kustomize build` and `helm template` print them: each pod of a
// StatefulSet, Deployment, DaemonSet or Pod becomes a node in a container of its image, with the names that services
// give it, its variables, files, volumes and probes. Settings that have no meaning without a cluster are reported.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "draft/container.h"
#include "draft/draft.h"

namespace rose::draft {

struct DraftedManifests {
  Drafted drafted;
  std::vector<DraftFile> files;
};

struct ManifestText {
  std::string name;  // for messages
  std::string text;
};

// `folder`: where files are written, relative to the draft: "rose.files". Readiness commands may use the programs in
// `host.tools`. Errors are ErrorKind::input, with "file:line:" where there is one.
[[nodiscard]] Result<DraftedManifests> draft_manifests(const std::vector<ManifestText>& texts,
                                                       const std::string& folder, const Host& host);

}  // namespace rose::draft
