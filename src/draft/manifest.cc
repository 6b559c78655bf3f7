#include "draft/manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/yaml.h"
#include "draft/asks.h"
#include "draft/manifest_values.h"
#include "draft/secrets.h"
#include "draft/systems.h"
#include "draft/words.h"

namespace rose::draft {
namespace {

constexpr int kMostPods = 64;
constexpr std::size_t kMostNodes = 200;
const Yaml kNothing;
constexpr std::string_view kClusterDomain = "svc.cluster.local";

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

std::uint16_t tcp_port(std::string_view text) {
  const auto value = number(text);
  return value && *value > 0 && *value < 65536 ? static_cast<std::uint16_t>(*value) : std::uint16_t{0};
}

std::map<std::string, std::string> strings(const Yaml& map) {
  std::map<std::string, std::string> all;
  for (const auto& [key, value] : map.members)
    if (value.is_scalar()) all[key] = value.text;
  return all;
}

// True if it can be the key of a ConfigMap: the keys are names of files.
bool is_key(std::string_view key) {
  return !key.empty() && key != "." && key != ".." &&
         std::all_of(key.begin(), key.end(), [](char c) { return is_name_char(c); });
}

bool is_pod_name(std::string_view name) {
  return is_key(name) && name.size() <= 63 && name != "client" && (is_alpha(name.front()) || is_digit(name.front()));
}

bool is_image(std::string_view name) {
  return !name.empty() && !name.starts_with('-') && fits_toml(name) &&
         std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) > ' '; });
}

// True if rose.toml can contain the path as the source or target of a volume.
bool is_volume_path(std::string_view path) {
  return !path.empty() && fits_toml(path) && path.find_first_of(":\n") == std::string_view::npos;
}

// True for containers that only watch or proxy the pod's main container.
bool serves_another(std::string_view name) {
  for (const char* word : {"metrics", "exporter", "istio-proxy", "linkerd", "fluent", "jmx", "reloader", "agent"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

struct Object {
  const Yaml* root = nullptr;
  std::string file, kind, name, space;
};

// The content of a ConfigMap or a Secret.
struct Content {
  std::map<std::string, std::string> keys;
  bool secret = false;
};

struct Pod {
  std::string name;   // also its host name
  std::string owner;  // "StatefulSet zk"
  std::string subdomain;
  std::string space;
  int ordinal = 0;
  const Yaml* meta = nullptr;  // metadata of its template
  const Yaml* spec = nullptr;
  const Yaml* claims = nullptr;  // volumeClaimTemplates
  bool orderly = false;
  std::string place;  // "file:line"
};

class Manifests {
 public:
  Manifests(std::string folder, const Host& host) : folder_(std::move(folder)), host_(host) {}

  Result<DraftedManifests> read(const std::vector<ManifestText>& texts) {
    std::vector<std::vector<Yaml>> documents;
    for (const ManifestText& one : texts) {
      auto parsed = parse_yaml_documents(without_definitions(one.text), one.name);
      if (!parsed && one.text.find("{{") != std::string::npos)
        return fail(ErrorKind::input, parsed.error().message,
                    "it is a Helm template: 'helm template NAME CHART > FILE' prints what rose reads");
      if (!parsed) return Unexpected(std::move(parsed).error());
      documents.push_back(std::move(*parsed));
    }
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (const Yaml& root : documents[i]) ROSE_CHECK(take(root, texts[i].name));
    for (const Object& object : objects_) ROSE_CHECK(take_pods(object));
    if (pods_.empty() && without_replicas_ > 0)
      return fail(
          ErrorKind::input,
          fmt::format("{}: nothing is started, because all replicas are 0", texts.empty() ? "" : texts.front().name),
          "copy the manifests, and set 'replicas' in the copy");
    if (pods_.empty())
      return fail(ErrorKind::input,
                  fmt::format("{}: no StatefulSet, Deployment, DaemonSet or Pod is in it",
                              texts.empty() ? "" : texts.front().name),
                  "a folder with kustomization.yaml is printed by 'kubectl kustomize FOLDER'");
    std::set<std::string> names;
    for (const Pod& pod : pods_) {
      if (!is_pod_name(pod.name))
        return fail(ErrorKind::input, fmt::format("{}: '{}' is not the name of a pod", pod.place, printable(pod.name)));
      if (!names.insert(variable_name(pod.name)).second)
        return fail(ErrorKind::input, fmt::format("{}: two pods are called '{}'", pod.place, pod.name));
    }
    for (const Pod& pod : pods_) ROSE_CHECK(make_node(pod));
    report_callers();
    describe();
    return std::move(result_);
  }

 private:
  // Objects

  Result<void> take(const Yaml& root, const std::string& file) {
    Object object{&root, file, text_at(root, "kind"), text_at(root, "metadata.name"),
                  text_at(root, "metadata.namespace")};
    if (object.space.empty()) object.space = "default";
    if (object.kind.ends_with("List") && at(root, "items").is_list()) {
      for (const Yaml& item : at(root, "items").items) ROSE_CHECK(take(item, file));
      return {};
    }
    if (object.kind.empty())
      return fail(ErrorKind::input,
                  fmt::format("{}:{}: not a manifest: 'kind' is missing", file, std::max(root.line, 1)));
    if (object.kind == "Kustomization")
      return fail(ErrorKind::input,
                  fmt::format("{}:{}: a Kustomization refers to manifests but is not one", file, root.line),
                  "'kubectl kustomize FOLDER > FILE' prints what rose reads");
    if (is_test_hook(root)) return {};
    if (object.kind == "ConfigMap" || object.kind == "Secret") {
      Content content;
      content.secret = object.kind == "Secret";
      for (const auto& [key, text] : strings(at(root, "data")))
        content.keys[key] = content.secret ? decoded(text) : text;
      for (const auto& [key, text] : strings(at(root, "binaryData"))) content.keys[key] = decoded(text);
      for (const auto& [key, text] : strings(at(root, "stringData"))) content.keys[key] = text;
      contents_[{object.kind, object.name}] = std::move(content);
      return {};
    }
    objects_.push_back(std::move(object));
    return {};
  }

  static bool is_test_hook(const Yaml& root) {
    for (const auto& [key, value] : at(root, "metadata.annotations").members)
      if (key == "helm.sh/hook" && value.text.find("test") != std::string::npos) return true;
    return false;
  }

  Result<void> take_pods(const Object& object) {
    const Yaml& root = *object.root;
    const std::string place = fmt::format("{}:{}", object.file, std::max(root.line, 1));
    const bool set = object.kind == "StatefulSet";
    if (object.kind == "Pod") {
      pods_.push_back({object.name, "Pod " + object.name, text_at(root, "spec.subdomain"), object.space, 0,
                       &at(root, "metadata"), &at(root, "spec"), nullptr, false, place});
      return {};
    }
    if (!set && object.kind != "Deployment" && object.kind != "DaemonSet" && object.kind != "ReplicaSet") {
      if (object.kind == "Job") jobs_.push_back(object);
      else if (object.kind == "Service") services_.push_back(object);
      else unused_.insert(object.kind);
      if (object.kind == "RoleBinding" || object.kind == "ClusterRoleBinding")
        for (const Yaml& subject : at(root, "subjects").items)
          if (text_at(subject, "kind") == "ServiceAccount") with_role_.insert(text_at(subject, "name"));
      return {};
    }
    if (object.name.empty()) return fail(ErrorKind::input, fmt::format("{}: metadata.name is missing", place));
    const std::string wanted = text_at(root, "spec.replicas");
    const auto replicas =
        wanted.empty() || object.kind == "DaemonSet" ? std::optional<std::int64_t>(1) : number(wanted);
    if (!replicas || *replicas < 0 || *replicas > kMostPods)
      return fail(ErrorKind::input, fmt::format("{}: replicas is '{}', a number up to {} is needed", place,
                                                printable(wanted), kMostPods));
    without_replicas_ += *replicas == 0 ? 1 : 0;
    if (*replicas == 0) around().about.push_back(fmt::format("{} {} has no replicas.", object.kind, object.name));
    if (object.kind == "DaemonSet")
      around().doubts.push_back(
          fmt::format("DaemonSet {} is one node here, because there is one machine", object.name));
    const auto first = number(text_at(root, "spec.ordinals.start")).value_or(0);
    for (int i = 0; i < *replicas; ++i) {
      Pod pod;
      pod.ordinal = static_cast<int>(first) + i;
      pod.name = set || *replicas > 1 ? fmt::format("{}-{}", object.name, pod.ordinal) : object.name;
      pod.owner = fmt::format("{} {}", object.kind, object.name);
      pod.subdomain = set ? text_at(root, "spec.serviceName") : text_at(root, "spec.template.spec.subdomain");
      pod.space = object.space;
      pod.meta = &at(root, "spec.template.metadata");
      pod.spec = &at(root, "spec.template.spec");
      pod.claims = &at(root, "spec.volumeClaimTemplates");
      pod.orderly = set && *replicas > 1 && text_at(root, "spec.podManagementPolicy") != "Parallel";
      pod.place = place;
      pods_.push_back(std::move(pod));
    }
    if (pods_.size() > kMostNodes)
      return fail(ErrorKind::input, fmt::format("{}: more than {} pods", object.file, kMostNodes));
    return {};
  }

  // Reports pods that were given rights to the API of the cluster, because they may need the API to elect a leader or
  // to find their peers.
  void report_callers() {
    std::vector<std::string> callers;
    for (const Pod& pod : pods_)
      if (with_role_.contains(text_at(*pod.spec, "serviceAccountName")) &&
          text_at(*pod.spec, "automountServiceAccountToken") != "false")
        callers.push_back(pod.name);
    if (callers.empty()) return;
    around().doubts.push_back(fmt::format(
        "{} may call the API of Kubernetes, because the ServiceAccount has a role. A run does not have this API, so "
        "configure {} to do without it",
        fmt::join(callers, ", "), callers.size() == 1 ? "it" : "them"));
  }

  // Nodes

  struct Making {
    const Pod& pod;
    const Yaml& container;
    NodeDraft node;
    std::map<std::string, std::string> env;      // as in rose.toml, for $(NAME)
    std::map<std::string, std::uint16_t> ports;  // by name
  };

  Surroundings& around() { return result_.drafted.around; }

  Result<void> make_node(const Pod& pod) {
    const Yaml& containers = at(*pod.spec, "containers");
    const Yaml* main = nullptr;
    for (const Yaml& one : containers.items)
      if (main == nullptr || (serves_another(text_at(*main, "name")) && !serves_another(text_at(one, "name"))))
        main = &one;
    if (main == nullptr || !is_image(text_at(*main, "image")))
      return fail(
          ErrorKind::input, fmt::format("{}: {} has no container with an image", pod.place, pod.owner),
          "rose reads complete manifests: 'kubectl kustomize FOLDER' and 'helm template NAME CHART' print them");
    Making making{pod, *main, {}, {}, {}};
    NodeDraft& node = making.node;
    node.name = pod.name;
    node.variable = variable_name(pod.name);
    node.image = text_at(*main, "image");
    node.system = find_system_of_image(node.image);
    const std::string title = node.system != nullptr ? std::string(node.system->title()) : "a container";
    node.about.push_back(
        fmt::format("{}: {}, from {} ({}): image {}", pod.name, title, pod.owner, pod.place, node.image));
    if (pod.orderly && pod.ordinal > 0)
      node.about.push_back("In a cluster it starts when the pods before it are ready; here all start at once.");
    for (const Yaml& one : containers.items)
      if (&one != main)
        node.doubts.push_back(
            fmt::format("the container {} of the pod is left out: a node is one container", text_at(one, "name")));
    add_ports(making);
    add_names(making);
    add_environment(making);
    take_password(node, [&](const std::string& variable) { return making.env.contains(variable); });
    add_command(making);
    add_volumes(making);
    add_security(making);
    add_init(making);
    add_ready(making);
    if (const std::vector<std::string> left = left_out(*pod.spec, *main); !left.empty())
      node.doubts.push_back(fmt::format("left out, because a run has nothing like it: {}", fmt::join(left, ", ")));
    node.restart = "{ delay = \"1s\", max = 5 }";
    node.restart_note = "as pods are";
    if (text_at(*pod.spec, "hostNetwork") == "true")
      node.doubts.emplace_back("it shares the host's network in a cluster; here it has its own address");
    result_.drafted.nodes.push_back(std::move(node));
    return {};
  }

  void add_ports(Making& making) {
    std::vector<std::uint16_t> all;
    for (const Yaml& port : at(making.container, "ports").items) {
      const auto value = number(text_at(port, "containerPort"));
      if (!value || *value < 1 || *value > 65535) continue;
      const auto given = static_cast<std::uint16_t>(*value);
      if (const std::string name = text_at(port, "name"); !name.empty()) making.ports[name] = given;
      const std::string protocol = text_at(port, "protocol");
      if (protocol.empty() || protocol == "TCP") all.push_back(given);
    }
    // The client port: from rose's knowledge of the system, else from a Service for clients, else from a headless one.
    std::uint16_t& chosen = making.node.port;
    if (making.node.system != nullptr) chosen = making.node.system->usual_port();
    for (const bool headless : {false, true})
      for (const Object& service : services_) {
        if (chosen != 0 || !selects(service, making.pod) ||
            (text_at(*service.root, "spec.clusterIP") == "None") != headless ||
            at(*service.root, "spec.ports").items.empty())
          continue;
        const Yaml& first = at(*service.root, "spec.ports").items.front();
        std::string target = text_at(first, "targetPort");
        if (target.empty()) target = text_at(first, "port");
        const auto named = making.ports.find(target);
        const std::uint16_t port = named != making.ports.end() ? named->second : tcp_port(target);
        if (std::find(all.begin(), all.end(), port) != all.end()) chosen = port;
      }
    if (chosen == 0 && !all.empty()) chosen = all.front();
  }

  [[nodiscard]] bool selects(const Object& service, const Pod& pod) const {
    const auto selector = strings(at(*service.root, "spec.selector"));
    const auto labels = strings(at(*pod.meta, "labels"));
    if (selector.empty() || service.space != pod.space) return false;
    return std::all_of(selector.begin(), selector.end(), [&](const auto& one) {
      const auto found = labels.find(one.first);
      if (one.first == "statefulset.kubernetes.io/pod-name") return one.second == pod.name;
      return found != labels.end() && found->second == one.second;
    });
  }

  void add_names(Making& making) {
    const Pod& pod = making.pod;
    const auto add = [&](const std::string& name) {
      auto& aliases = making.node.aliases;
      if (name != making.node.name && std::find(aliases.begin(), aliases.end(), name) == aliases.end() &&
          !name.empty() && std::all_of(name.begin(), name.end(), is_name_char) && name.size() <= 253)
        aliases.push_back(name);
    };
    // The full name first, because a pod uses that for itself.
    const auto family = [&](const std::string& name) {
      add(fmt::format("{}.{}.{}", name, pod.space, kClusterDomain));
      add(name);
      add(fmt::format("{}.{}", name, pod.space));
      add(fmt::format("{}.{}.svc", name, pod.space));
    };
    if (!pod.subdomain.empty()) family(fmt::format("{}.{}", pod.name, pod.subdomain));
    for (const Object& service : services_)
      if (selects(service, pod)) {
        family(service.name);
        // With a headless service, each pod has a name of its own.
        if (text_at(*service.root, "spec.clusterIP") == "None" && pod.subdomain.empty() &&
            pod.owner.starts_with("Stateful"))
          family(fmt::format("{}.{}", pod.name, service.name));
      }
  }

  // Replaces "$(NAME)" by the value of the container's variable NAME. "$$(NAME)" becomes "$(NAME)".
  static std::string expanded(const std::map<std::string, std::string>& env, std::string_view text) {
    const std::string kept = escaped(text);
    std::string out;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept.compare(i, 3, "$$(") == 0) {
        out += "$(";
        i += 2;
        continue;
      }
      const std::size_t end = kept.compare(i, 2, "$(") == 0 ? kept.find(')', i) : std::string::npos;
      const auto found = end == std::string::npos ? env.end() : env.find(kept.substr(i + 2, end - i - 2));
      if (found == env.end()) {
        out += kept[i];
        continue;
      }
      out += found->second;
      i = end;
    }
    return out;
  }

  [[nodiscard]] const Content* content_of(const std::string& kind, const std::string& name) const {
    const auto found = contents_.find({kind, name});
    return found == contents_.end() ? nullptr : &found->second;
  }

  // Returns a generated word in place of the value of a Secret's key. Equal values get equal words.
  std::string secret(const std::string& name, const std::string& key) {
    const Content* content = content_of("Secret", name);
    std::string real = fmt::format("{}/{}", name, key);
    if (content != nullptr && content->keys.contains(key)) real = content->keys.at(key);
    return secrets_.masked("password", real);
  }

  std::optional<std::string> field(const Making& making, const std::string& path) const {
    const Pod& pod = making.pod;
    if (path == "metadata.name" || path == "metadata.uid") return pod.name;
    if (path == "metadata.namespace") return pod.space;
    if (path == "status.podIP" || path == "status.podIPs" || path == "status.hostIP") return "${ip}";
    if (path == "spec.nodeName") return "${node}";
    if (path == "spec.serviceAccountName") return "default";
    for (const char* kind : {"labels", "annotations"}) {
      const std::string start = fmt::format("metadata.{}['", kind);
      if (!path.starts_with(start) || !path.ends_with("']")) continue;
      const std::string key = path.substr(start.size(), path.size() - start.size() - 2);
      if (key == "apps.kubernetes.io/pod-index") return std::to_string(pod.ordinal);
      const auto all = strings(at(*pod.meta, kind));
      if (const auto found = all.find(key); found != all.end()) return escaped(found->second);
    }
    return std::nullopt;
  }

  void set_variable(Making& making, const std::string& name, std::string value, std::string comment = {}) {
    NodeDraft& node = making.node;
    if (!is_environment_name(name) || !fits_toml(value)) {
      node.doubts.push_back(fmt::format("its variable {} cannot be written here", printable(name)));
      return;
    }
    making.env[name] = value;
    std::erase_if(node.env, [&](const Variable& one) { return one.name == name; });
    node.env.push_back({name, std::move(value), std::move(comment)});
  }

  void add_environment(Making& making) {
    for (const Yaml& from : at(making.container, "envFrom").items) {
      const std::string prefix = text_at(from, "prefix");
      for (const auto& [kind, key] : {std::pair("ConfigMap", "configMapRef"), std::pair("Secret", "secretRef")}) {
        const std::string name = text_at(at(from, key), "name");
        if (name.empty()) continue;
        const Content* content = content_of(kind, name);
        if (content == nullptr) {
          if (text_at(at(from, key), "optional") == "true") continue;
          making.node.doubts.push_back(
              fmt::format("its variables come from the {} {}, which the manifests do not define", kind, name));
          continue;
        }
        for (const auto& [variable, value] : content->keys)
          if (content->secret)
            set_variable(making, prefix + variable, secret(name, variable), "of a Secret: generated");
          else set_plain(making, prefix + variable, value);
      }
    }
    for (const Yaml& one : at(making.container, "env").items) {
      const std::string name = text_at(one, "name");
      const Yaml& from = at(one, "valueFrom");
      if (from.kind == Yaml::Kind::null) {
        set_plain(making, name, text_at(one, "value"));
        continue;
      }
      if (const std::string path = text_at(from, "fieldRef.fieldPath"); !path.empty()) {
        if (auto value = field(making, path)) set_variable(making, name, std::move(*value), path);
        else making.node.env_left.push_back(fmt::format("{}: {} is not known here", name, path));
      } else if (const std::string map = text_at(from, "configMapKeyRef.name"); !map.empty()) {
        const std::string key = text_at(from, "configMapKeyRef.key");
        const Content* content = content_of("ConfigMap", map);
        const bool there = content != nullptr && content->keys.contains(key);
        if (there) set_plain(making, name, content->keys.at(key));
        else if (text_at(from, "configMapKeyRef.optional") != "true")
          making.node.doubts.push_back(fmt::format(
              "{} comes from the key {} of the ConfigMap {}, which the manifests do not define", name, key, map));
      } else if (const std::string hidden = text_at(from, "secretKeyRef.name"); !hidden.empty()) {
        set_variable(making, name, secret(hidden, text_at(from, "secretKeyRef.key")), "of a Secret: generated");
      } else if (const std::string resource = text_at(from, "resourceFieldRef.resource"); !resource.empty()) {
        const auto value = resource_value(making.container, at(from, "resourceFieldRef"));
        if (!value)
          making.node.doubts.push_back(
              fmt::format("{} is 1, because {} is not set; in a cluster it is that of the machine", name, resource));
        set_variable(making, name, value.value_or("1"), resource);
      }
    }
  }

  void set_plain(Making& making, const std::string& name, const std::string& value) {
    const std::string masked = secrets_.masked(name, value);
    set_variable(making, name, expanded(making.env, masked),
                 masked != value ? "looked like a secret: replaced by a generated one" : "");
  }

  std::vector<std::string> words(const Making& making, const Yaml& list) {
    std::vector<std::string> all;
    for (const Yaml& item : list.items) all.push_back(expanded(making.env, secrets_.masked("", item.text)));
    return all;
  }

  void add_command(Making& making) {
    making.node.entrypoint = words(making, at(making.container, "command"));
    making.node.command = words(making, at(making.container, "args"));
    if (const std::string folder = text_at(making.container, "workingDir");
        folder.starts_with('/') && fits_toml(folder))
      making.node.options.insert(making.node.options.end(), {"--workdir", folder});
    const auto fit = [](const std::vector<std::string>& all) {
      return std::all_of(all.begin(), all.end(), fits_toml) && (all.empty() || !all.front().empty());
    };
    if (fit(making.node.entrypoint) && fit(making.node.command)) return;
    making.node.doubts.emplace_back("its command cannot be written in TOML: the image's own command is used");
    making.node.entrypoint.clear();
    making.node.command.clear();
  }

  // Adds the files of a ConfigMap or Secret to the draft, in a separate folder for each choice of keys. Returns the
  // folder's path, or "" if there is no such ConfigMap or Secret.
  std::string place_content(Making& making, const std::string& kind, const std::string& name, const Yaml& source,
                            bool optional) {
    const Content* content = is_key(name) ? content_of(kind, name) : nullptr;
    if (content == nullptr) {
      if (!optional)
        making.node.doubts.push_back(fmt::format(
            "it mounts the {} {}, which the manifests do not define: an empty folder is mounted instead", kind, name));
      return "";
    }
    std::map<std::string, std::string> paths;  // key -> path in the folder
    for (const Yaml& item : at(source, "items").items) paths[text_at(item, "key")] = text_at(item, "path");
    if (paths.empty())
      for (const auto& [key, text] : content->keys) paths[key] = key;
    std::erase_if(paths, [&](const auto& one) {
      const std::filesystem::path inside = std::filesystem::path(one.second).lexically_normal();
      const bool good = content->keys.contains(one.first) && is_key(one.first) && is_volume_path(one.second) &&
                        inside.is_relative() && inside.has_filename() && *inside.begin() != "..";
      if (!good)
        making.node.doubts.push_back(
            fmt::format("the key {} of {} {} cannot be written as a file", printable(one.first), kind, name));
      return !good;
    });
    unsigned mode = 0644;
    if (const std::string given = text_at(source, "defaultMode"); !given.empty()) {
      // YAML has octal numbers with a leading 0; JSON only decimal ones.
      const int base = given.size() > 1 && given[0] == '0' ? 8 : 10;
      const std::string digits = given.starts_with("0o") ? given.substr(2) : given;
      (void)std::from_chars(digits.data(), digits.data() + digits.size(), mode, base);
      mode &= 0777;
    }
    std::string place = fmt::format("{}/{}", folder_, name);
    for (int n = 2;; ++n) {
      const auto known = placed_.find(place);
      if (known == placed_.end() || known->second == std::pair(paths, mode)) break;
      place = fmt::format("{}/{}-{}", folder_, name, n);
    }
    if (placed_.emplace(place, std::pair(paths, mode)).second)
      for (const auto& [key, path] : paths) {
        const std::string& real = content->keys.at(key);
        const bool certificate = real.find("-----BEGIN") != std::string::npos;
        if (content->secret && certificate)
          making.node.doubts.push_back(fmt::format(
              "the file {} of the Secret {} is a key or a certificate, which is not copied: put one at {}/{}", key,
              name, place, path));
        const std::string text = !content->secret ? real : certificate ? "" : secret(name, key);
        // The mode lets every user of the container read the file: in a cluster, users other than root can read such
        // files through the files' group (fsGroup), which a run does not set.
        result_.files.push_back({fmt::format("{}/{}", place, path), text, mode | 0444});
      }
    return place;
  }

  void add_volumes(Making& making) {
    NodeDraft& node = making.node;
    std::map<std::string, const Yaml*> sources;
    for (const Yaml& volume : at(*making.pod.spec, "volumes").items) sources[text_at(volume, "name")] = &volume;
    std::set<std::string> claims;
    if (making.pod.claims != nullptr)
      for (const Yaml& claim : making.pod.claims->items) claims.insert(text_at(claim, "metadata.name"));
    for (const Yaml& mount : at(making.container, "volumeMounts").items) {
      const std::string name = text_at(mount, "name");
      std::string target = text_at(mount, "mountPath");
      const std::string part = !text_at(mount, "subPath").empty() ? text_at(mount, "subPath")
                                                                  : expanded(making.env, text_at(mount, "subPathExpr"));
      while (target.size() > 1 && target.ends_with('/')) target.pop_back();
      const bool shape = target.starts_with('/') && is_volume_path(target) && (part.empty() || is_volume_path(part)) &&
                         part.find("..") == std::string::npos && is_key(name);
      if (!shape) {
        node.doubts.push_back(fmt::format("its mount at {} cannot be written here", printable(target)));
        continue;
      }
      const auto found = sources.find(name);
      const Yaml& source = found == sources.end() ? kNothing : *found->second;
      if (found == sources.end() && !claims.contains(name)) {
        node.doubts.push_back(fmt::format("its mount {} at {} has no volume", name, target));
        continue;
      }
      mount_one(making, source, name, target, part, text_at(mount, "readOnly") == "true");
    }
  }

  void mount_one(Making& making, const Yaml& source, const std::string& name, const std::string& target,
                 const std::string& part, bool read_only) {
    NodeDraft& node = making.node;
    const auto add_files = [&](const std::string& place, const std::string& file) {
      // Mounts the folder `place`, or only the part of it that `subPath` or `file` names.
      const std::string inside = part.empty() ? "" : "/" + part;
      const std::string from = file.empty() ? place + inside : fmt::format("{}/{}", place, file);
      node.volumes.push_back(fmt::format("./{}:{}:ro", escaped(from), escaped(target)));
    };
    for (const auto& [kind, key] : {std::pair("ConfigMap", "configMap"), std::pair("Secret", "secret")}) {
      const Yaml& one = at(source, key);
      if (one.kind == Yaml::Kind::null) continue;
      const std::string of = !text_at(one, "name").empty() ? text_at(one, "name") : text_at(one, "secretName");
      const std::string place = place_content(making, kind, of, one, text_at(one, "optional") == "true");
      if (!place.empty()) add_files(place, "");
      return;
    }
    if (const Yaml& projected = at(source, "projected.sources"); projected.is_list()) {
      for (const Yaml& one : projected.items)
        for (const auto& [kind, key] : {std::pair("ConfigMap", "configMap"), std::pair("Secret", "secret")}) {
          const std::string of = text_at(at(one, key), "name");
          if (of.empty()) continue;
          const std::string place = place_content(making, kind, of, at(one, key), false);
          if (place.empty()) continue;
          // Mount each file separately, because the files of several sources share one folder.
          for (const auto& [from, path] : placed_.at(place).first)
            node.volumes.push_back(
                fmt::format("./{}/{}:{}/{}:ro", escaped(place), escaped(path), escaped(target), escaped(path)));
        }
      return;
    }
    if (const std::string path = text_at(source, "hostPath.path"); path.starts_with('/') && is_volume_path(path)) {
      node.doubts.push_back(
          fmt::format("it mounts {0} of its host at {1}: in a run, it mounts {0} of this machine", path, target));
      node.volumes.push_back(fmt::format("{}:{}{}", escaped(path), escaped(target), read_only ? ":ro" : ""));
      return;
    }
    if (at(source, "downwardAPI").kind != Yaml::Kind::null) {
      node.doubts.push_back(fmt::format("the files of the downward API at {} do not exist in a run", target));
      return;
    }
    if (text_at(source, "emptyDir.medium") == "Memory") {
      const std::uint64_t size = amount(text_at(source, "emptyDir.sizeLimit"));
      node.options.insert(node.options.end(), {"--tmpfs", size > 0 ? fmt::format("{}:size={}", target, size) : target});
      return;
    }
    // A claim, an emptyDir or a volume of a driver becomes a folder in the node's folder. It gets the container's user
    // as its owner.
    if (at(source, "csi").kind != Yaml::Kind::null || at(source, "nfs").kind != Yaml::Kind::null)
      node.doubts.push_back(fmt::format("the volume {} at {} is an empty folder in a run", name, target));
    const std::string inside = part.empty() ? "" : "/" + part;
    node.volumes.push_back(
        fmt::format("${{dir}}/{}{}:{}{}", name, escaped(inside), escaped(target), read_only ? ":ro" : ""));
  }

  // A setting of the container's securityContext, or else of the pod's.
  static std::string security_of(const Making& making, std::string_view key) {
    const std::string own = text_at(at(making.container, "securityContext"), key);
    return own.empty() ? text_at(at(*making.pod.spec, "securityContext"), key) : own;
  }

  // "1000:3000", "1000", or "" for the image's user.
  static std::string user_of(const Making& making) {
    const std::string user = security_of(making, "runAsUser"), group = security_of(making, "runAsGroup");
    if (!number(user)) return "";
    return number(group) ? fmt::format("{}:{}", user, group) : user;
  }

  void add_security(Making& making) {
    NodeDraft& node = making.node;
    const auto setting = [&](std::string_view key) { return security_of(making, key); };
    if (const std::string user = user_of(making); !user.empty()) node.user = user;
    const auto add_group = [&](const std::string& group) {
      if (number(group)) node.options.insert(node.options.end(), {"--group-add", group});
    };
    add_group(setting("fsGroup"));
    for (const Yaml& one : at(*making.pod.spec, "securityContext.supplementalGroups").items) add_group(one.text);
    for (const Yaml& one : at(making.container, "securityContext.capabilities.drop").items)
      if (is_key(one.text)) node.options.insert(node.options.end(), {"--cap-drop", one.text});
    for (const Yaml& one : at(making.container, "securityContext.capabilities.add").items)
      if (is_key(one.text)) node.options.insert(node.options.end(), {"--cap-add", one.text});
    if (setting("allowPrivilegeEscalation") == "false")
      node.options.insert(node.options.end(), {"--security-opt", "no-new-privileges"});
    if (setting("readOnlyRootFilesystem") == "true") node.options.emplace_back("--read-only");
    for (const Yaml& one : at(*making.pod.spec, "securityContext.sysctls").items)
      if (is_key(text_at(one, "name")) && fits_toml(text_at(one, "value")))
        node.options.insert(node.options.end(),
                            {"--sysctl", fmt::format("{}={}", text_at(one, "name"), text_at(one, "value"))});
    if (setting("privileged") == "true")
      node.doubts.emplace_back("it is privileged; the container is not: add --privileged to options if it must be");
    if (const std::uint64_t memory = amount(text_at(at(making.container, "resources.limits"), "memory")); memory > 0)
      node.options.insert(node.options.end(), {"--memory", std::to_string(memory)});
    if (const auto cpus = quantity(text_at(at(making.container, "resources.limits"), "cpu")))
      node.options.insert(node.options.end(), {"--cpus", fmt::format("{:g}", *cpus)});
  }

  // Init containers of the same image run in the node's container, before its command.
  void add_init(Making& making) {
    NodeDraft& node = making.node;
    std::vector<std::string> first;  // lines of a shell script
    for (const Yaml& init : at(*making.pod.spec, "initContainers").items) {
      const std::string name = text_at(init, "name");
      const bool same = text_at(init, "image") == node.image && !at(init, "command").items.empty();
      if (!same || node.entrypoint.empty()) {
        node.doubts.push_back(fmt::format("the init container {} ({}) is left out: {}", name, text_at(init, "image"),
                                          same ? "the pod's own command is not in the manifest"
                                               : "its image is not the node's, or its command is not in the manifest"));
        continue;
      }
      mount_missing(making, init);
      Making own{making.pod, init, {}, {}, {}};
      own.node.name = node.name;
      add_environment(own);
      first.push_back(init_line(own, name));
      for (std::string& doubt : own.node.doubts)
        if (std::find(node.doubts.begin(), node.doubts.end(), doubt) == node.doubts.end())
          node.doubts.push_back(std::move(doubt));
      if (const std::string user = user_of(own); user != node.user)
        node.doubts.push_back(
            fmt::format("the init container {} runs as user {} in a cluster, but as that of the "
                        "node here, because it runs in the node's container",
                        name, user.empty() ? "of its image" : user));
    }
    if (first.empty()) return;
    std::string script;
    // A restart of the node runs the init containers again. They must tolerate that, because a pod that is rescheduled
    // runs them again, too.
    for (const std::string& line : first) script += line + "\n";
    node.changes.emplace_back("init containers with the node's image run in the node's container, before its command");
    std::vector<std::string> entrypoint = {"/bin/sh", "-ec", script + "exec \"$@\"", "sh"};
    entrypoint.insert(entrypoint.end(), node.entrypoint.begin(), node.entrypoint.end());
    node.entrypoint = std::move(entrypoint);
  }

  // A line of a shell script that runs the init container's command with its variables, in its folder.
  std::string init_line(Making& init, const std::string& name) {
    std::string line;
    for (const Variable& one : init.node.env) {
      if (is_variable_name(one.name)) line += fmt::format("{}={} ", one.name, shell_quoted(one.value));
      else init.node.doubts.push_back(fmt::format("the init container {} lacks the variable {}", name, one.name));
    }
    std::vector<std::string> quoted;
    for (const char* key : {"command", "args"})
      for (const std::string& word : words(init, at(init.container, key))) quoted.push_back(shell_quoted(word));
    line += fmt::format("{}", fmt::join(quoted, " "));
    const std::string folder = text_at(init.container, "workingDir");
    return folder.starts_with('/') && fits_toml(folder)
               ? fmt::format("(cd {} && {})", shell_quoted(escaped(folder)), line)
               : line;
  }

  // Adds the mounts that only the init container has.
  void mount_missing(Making& making, const Yaml& init) {
    const std::vector<std::string> before = making.node.volumes;
    Making other{making.pod, init, {}, making.env, {}};
    add_volumes(other);
    for (std::string& volume : other.node.volumes) {
      const std::vector<std::string> parts = split(volume, ':');
      const bool there = std::any_of(before.begin(), before.end(),
                                     [&](const std::string& one) { return split(one, ':')[1] == parts[1]; });
      if (!there) making.node.volumes.push_back(std::move(volume));
    }
  }

  static std::string in_container(const NodeDraft& node) {
    return fmt::format("$(command -v podman || echo docker) exec \"$ROSE_CONTAINER_{}\"", node.variable);
  }

  // Sets `ready` to the pod's probe, run in the way in which a client or the pod would run it.
  void add_ready(Making& making) {
    NodeDraft& node = making.node;
    const Yaml* probe = &kNothing;
    for (const char* key : {"readinessProbe", "startupProbe", "livenessProbe"})
      if (const Yaml& one = at(making.container, key); probe->kind == Yaml::Kind::null) probe = &one;
    const auto port_of = [&](const std::string& text) -> std::uint16_t {
      if (const std::uint16_t value = tcp_port(text); value != 0) return value;
      const auto named = making.ports.find(text);
      return named == making.ports.end() ? std::uint16_t{0} : named->second;
    };
    const std::string timeout = ", timeout = \"120s\" }";
    if (const Yaml& command = at(*probe, "exec.command"); command.is_list()) {
      std::string line = in_container(node);
      for (const std::string& word : words(making, command)) line += " " + shell_quoted(word);
      if (fits_toml(line)) node.ready = "{ command = [\"sh\", \"-c\", " + toml::literal(line) + "]" + timeout;
    } else if (const std::string http = text_at(*probe, "httpGet.port"); port_of(http) != 0) {
      const std::string scheme = text_at(*probe, "httpGet.scheme") == "HTTPS" ? "https" : "http";
      std::string path = text_at(*probe, "httpGet.path");
      if (!path.starts_with('/')) path = "/" + path;
      if (host_.has("curl"))
        node.ready =
            fmt::format("{{ command = [\"curl\", \"-kfsS\", \"-m\", \"5\", \"-o\", \"/dev/null\", {}]",
                        toml::literal(fmt::format("{}://${{ip}}:{}{}", scheme, port_of(http), escaped(path)))) +
            timeout;
      else node.ready = fmt::format("{{ tcp = {}", port_of(http)) + timeout;
    } else if (const std::uint16_t port = port_of(text_at(*probe, "tcpSocket.port")) != 0
                                              ? port_of(text_at(*probe, "tcpSocket.port"))
                                              : port_of(text_at(*probe, "grpc.port"));
               port != 0) {
      node.ready = fmt::format("{{ tcp = {}", port) + timeout;
    }
    if (node.ready.empty()) {
      std::vector<std::uint16_t> ports;
      for (const auto& [name, port] : making.ports) ports.push_back(port);
      node.ready = ready_of_image(node.image, node.variable, node.port, ports, host_.has("curl"));
      if (!node.ready.empty()) node.about.push_back(kAsksItself);
    }
    if (node.ready.empty() && node.port != 0) node.ready = fmt::format("{{ tcp = {}", node.port) + timeout;
  }

  // The deployment

  void describe() {
    Surroundings& out = around();
    out.network = "netns";
    out.about.push_back(
        "The manifests are not changed. In each run their pods are nodes, in the run's own containers and network; "
        "podman or docker creates them. Claims and empty folders are in the nodes' folders; the files of ConfigMaps "
        "are beside this file.");
    if (!unused_.empty())
      out.about.push_back(fmt::format("Ignored, because it means nothing in a run: {}.", fmt::join(unused_, ", ")));
    for (const Object& job : jobs_) {
      const std::string image = job_image(job);
      const auto same = std::find_if(result_.drafted.nodes.begin(), result_.drafted.nodes.end(),
                                     [&](const NodeDraft& node) { return node.image == image; });
      std::vector<std::string> command;
      const Yaml& containers = at(*job.root, "spec.template.spec.containers");
      if (!containers.items.empty())
        for (const char* key : {"command", "args"})
          for (const Yaml& item : at(containers.items.front(), key).items) command.push_back(item.text);
      if (same == result_.drafted.nodes.end() || command.empty() || !out.form.empty()) {
        out.doubts.push_back(fmt::format(
            "the Job {} is left out: if it makes a cluster of the nodes, let [deployment] form run it", job.name));
        continue;
      }
      std::string line = in_container(*same);
      for (const std::string& word : command) line += " " + shell_quoted(word);
      if (!fits_toml(line)) continue;
      // As in a cluster, a Job that fails is repeated, at most backoffLimit times (6 by default).
      const auto tries = number(text_at(*job.root, "spec.backoffLimit")).value_or(6);
      out.form = {"sh", "-c",
                  escaped(fmt::format("for try in $(seq {}); do\n  {} && exit 0\n  sleep 1\ndone\nexit 1\n",
                                      std::clamp<std::int64_t>(tries, 1, 100), line))};
      out.doubts.push_back(
          fmt::format("[deployment] form runs the Job {} in the container of {}: check that it waits for the nodes",
                      job.name, same->name));
    }
    for (const Object& service : services_) {
      if (text_at(*service.root, "spec.type") == "ExternalName")
        out.doubts.push_back(fmt::format("the Service {} stands for {}, which a run cannot reach", service.name,
                                         text_at(*service.root, "spec.externalName")));
      const bool used = std::any_of(pods_.begin(), pods_.end(), [&](const Pod& pod) { return selects(service, pod); });
      if (!used) continue;
      for (const Yaml& port : at(*service.root, "spec.ports").items) {
        const std::string from = text_at(port, "port");
        const std::string to = target_port(service, text_at(port, "targetPort"));
        if (const auto target = number(to); target && to != from)
          out.doubts.push_back(
              fmt::format("clients of the Service {} use port {} instead of {}, because its name "
                          "leads to the pods themselves",
                          service.name, to, from));
      }
    }
  }

  // The number of a Service's target port, which may be the name of a port of the pods.
  [[nodiscard]] std::string target_port(const Object& service, const std::string& target) const {
    if (number(target) || target.empty()) return target;
    for (const Pod& pod : pods_) {
      if (!selects(service, pod)) continue;
      for (const Yaml& container : at(*pod.spec, "containers").items)
        for (const Yaml& port : at(container, "ports").items)
          if (text_at(port, "name") == target) return text_at(port, "containerPort");
    }
    return target;
  }

  static std::string job_image(const Object& job) {
    const Yaml& containers = at(*job.root, "spec.template.spec.containers");
    return containers.items.empty() ? "" : text_at(containers.items.front(), "image");
  }

  const std::string folder_;
  const Host& host_;
  std::vector<Object> objects_, services_, jobs_;
  std::map<std::pair<std::string, std::string>, Content> contents_;
  std::vector<Pod> pods_;
  int without_replicas_ = 0;
  std::set<std::string> unused_;
  std::set<std::string> with_role_;  // ServiceAccounts with rights in the cluster
  std::map<std::string, std::pair<std::map<std::string, std::string>, unsigned>> placed_;
  Secrets secrets_;
  DraftedManifests result_;
};

}  // namespace

Result<DraftedManifests> draft_manifests(const std::vector<ManifestText>& texts, const std::string& folder,
                                         const Host& host) {
  return Manifests(folder, host).read(texts);
}

}  // namespace rose::draft
