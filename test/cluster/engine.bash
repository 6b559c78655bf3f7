# Sourced after common.bash by tests of containers. It sets up an engine with its own images and containers.
command -v podman >/dev/null || skip "no podman"
runtime=$(command -v runc || command -v crun || true)
[ -n "$runtime" ] || skip "neither runc nor crun"
command -v gcc >/dev/null || skip "no gcc"
store=$work/store
mkdir -p "$store"
# Podman's usual driver is overlay. With vfs, each container is a copy of its image, which takes longer, but works in a
# folder that is itself on an overlay.
driver=vfs
mkdir "$store"/{lower,upper,made,shown}
if mount -t overlay -o "lowerdir=$store/lower,upperdir=$store/upper,workdir=$store/made" overlay "$store/shown" \
  2>"$store/overlay.log"; then
  umount "$store/shown"
  driver=overlay
fi
cat > "$store/storage.conf" <<CONF
[storage]
driver = "$driver"
graphroot = "$store/graph"
runroot = "$store/run"
CONF
cat > "$store/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "$runtime"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "$store/tmp"
CONF
export CONTAINERS_STORAGE_CONF=$store/storage.conf CONTAINERS_CONF=$store/containers.conf
engine_toml='"podman"'

# import_image FOLDER NAME OPTION...: imports the folder as an image with this name.
import_image() {
  local folder=$1 image=$2
  shift 2
  tar -C "$folder" -c . | podman import "$@" - "$image" >"$store/import.log" 2>&1 ||
    { cat "$store/import.log"; skip "podman cannot import an image here"; }
}
no_containers() {
  local all; all=$(podman ps -aq --filter label=rose 2>/dev/null); [ -z "$all" ] || fail "containers left $1: $all"
}

# Check whether a container can run at all, because a machine may lack what the runtime needs.
mkdir -p "$store/probe"
printf 'int main(void) { return 0; }' | gcc -static -x c -o "$store/probe/true" - ||
  skip "gcc cannot link a static program"
import_image "$store/probe" localhost/rose-probe:1
podman run --rm --network none localhost/rose-probe:1 /true >"$store/probe.log" 2>&1 ||
  { cat "$store/probe.log"; skip "podman cannot run a container here: $(tail -1 "$store/probe.log")"; }
