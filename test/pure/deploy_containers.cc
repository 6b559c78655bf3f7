// Which container a cgroup folder belongs to is determined by the names that container managers give to such folders.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "deploy/machine/containers.h"
#include "folder.h"

namespace rose::deploy {
namespace {

const std::string kId(64, 'a');
const std::string kOther = std::string(63, 'a') + "b";

TEST_CASE("cgroups of containers and pods are recognised for both cgroup drivers") {
  struct Row {
    std::string path;
    std::string id;
    bool pod;
  };
  const std::string uid = "6f1d0c1e-8f5e-4a58-9d0c-2a2f6f9b1c11", escaped = "6f1d0c1e_8f5e_4a58_9d0c_2a2f6f9b1c11";
  const Row rows[] = {
      {"/docker/" + kId, kId, false},
      {"/system.slice/docker-" + kId + ".scope", kId, false},
      {"/machine.slice/libpod-" + kId + ".scope", kId, false},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope", kId, false},
      {"/libpod_parent/libpod-" + kId, kId, false},
      {"/system.slice/nerdctl-" + kId + ".scope", kId, false},
      {"/default/" + kId, kId, false},
      {"/default/my-nginx", "my-nginx", false},
      {"/k8s.io/web", "web", false},
      {"/kubepods/burstable/pod" + uid + "/" + kId, kId, false},
      {"/kubepods/burstable/pod" + uid, uid, true},
      {"/kubepods/pod" + uid, uid, true},
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + escaped + ".slice", uid, true},
      {"/kubepods.slice/kubepods-pod" + escaped + ".slice", uid, true},
      {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + escaped + ".slice", uid, true},
      {"/kubepods.slice/kubepods-pod" + escaped + ".slice/cri-containerd-" + kId + ".scope", kId, false},
      {"/kubepods.slice/kubepods-pod" + escaped + ".slice/crio-" + kId + ".scope", kId, false},
      {"/machine.slice/machine-libpod_pod_" + kId + ".slice", kId, true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.path);
    const auto owner = owner_of_cgroup(row.path);
    REQUIRE(owner.has_value());
    CHECK(owner->id == row.id);
    CHECK(owner->pod == row.pod);
  }
  for (const std::string& path :
       {std::string("/system.slice"), std::string("/system.slice/docker.service"),
        "/machine.slice/libpod-conmon-" + kId + ".scope", "/machine.slice/crio-conmon-" + kId + ".scope",
        std::string("/user.slice/session-3.scope"), std::string("/kubepods.slice"),
        std::string("/kubepods.slice/kubepods-burstable.slice"), std::string("/podium"), std::string("")}) {
    CAPTURE(path);
    CHECK_FALSE(owner_of_cgroup(path).has_value());
  }
}

TEST_CASE("a container's cgroup is found from its process's cgroup") {
  const std::string id(64, 'a');
  const std::filesystem::path top = "/sys/fs/cgroup";
  const auto scope = top / "machine.slice" / ("libpod-" + id + ".scope");
  CHECK(folder_of_container(scope / "container", top) == scope);
  CHECK(folder_of_container(scope, top) == scope);
  CHECK(folder_of_container(top / "docker" / id / "nested", top) == top / "docker" / id);
  CHECK(folder_of_container(top / "system.slice/x.service", top).empty());
  // this folder is that of a pod, so it contains all of the pod's containers
  CHECK(folder_of_container(top / "kubepods/burstable/pod12", top).empty());
  CHECK(folder_of_container(top, top).empty());
  CHECK(folder_of_container("", top).empty());
}

TEST_CASE("a container is found by id or a unique prefix, a pod by its uid") {
  const rose::test::Folder folder;
  const std::filesystem::path top = folder.path;
  const auto make = [&](const std::string& path) { std::filesystem::create_directories(top / path); };
  make("system.slice/docker-" + kId + ".scope");
  make("system.slice/docker-" + kOther + ".scope");
  make("kubepods.slice/kubepods-pod1234_5678.slice/cri-containerd-" + std::string(64, 'c') + ".scope/inner");

  const auto whole = locate_container(kId, top);
  REQUIRE(whole.has_value());
  CHECK(whole->cgroup == top / ("system.slice/docker-" + kId + ".scope"));
  const auto unique = locate_container("ccc", top);
  REQUIRE(unique.has_value());
  CHECK(unique->cgroup.parent_path().filename() == "kubepods-pod1234_5678.slice");
  const auto several = locate_container("aaa", top);
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().message == "'aaa' is the beginning of 2 container ids");
  CHECK(several.error().hint.find(kId) != std::string::npos);
  CHECK(several.error().hint.find(kOther) != std::string::npos);
  const auto pod = locate_container("pod:1234-5678", top);
  REQUIRE(pod.has_value());
  CHECK(pod->cgroup.filename() == "kubepods-pod1234_5678.slice");
  CHECK(locate_container("pod:12", top).has_value());
  const auto none = locate_container("pod:99", top);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().hint.find("1234-5678") != std::string::npos);
  CHECK_FALSE(locate_container("pod:", top).has_value());
}

TEST_CASE("a unit's slice gives its cgroup path") {
  CHECK(slice_path("system.slice") == "system.slice");
  CHECK(slice_path("system-postgresql.slice") == "system.slice/system-postgresql.slice");
  CHECK(slice_path("a-b-c.slice") == "a.slice/a-b.slice/a-b-c.slice");
  CHECK(slice_path("-.slice").empty());
}

}  // namespace
}  // namespace rose::deploy
