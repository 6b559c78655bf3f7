#!/usr/bin/env bash
# Disk faults affect what containers keep in volumes: named volumes (including one that two services share), volumes
# that the image declares, folders of the user, and any folder of the container that a fault names. Volumes still begin
# with the files that the image has there. Nothing is left behind, even if rose is killed.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
cd "$work"
export TMPDIR=$work
cat > keeper.c <<'C'
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
/* Appends a block to a file in each of its folders, again and again, and says what happened and how long it took. */
static void look(const char* folder, const char* file) {
  char name[256], text[64] = "nothing";
  struct stat of = {0};
  snprintf(name, sizeof name, "%s/%s", folder, file);
  int f = open(name, O_RDONLY);
  if (f >= 0) { ssize_t n = read(f, text, 63); text[n > 0 ? n : 0] = 0; close(f); }
  stat(folder, &of);
  printf("%s belongs to %d with mode %o and holds %s: %s\n", folder, (int)of.st_uid, of.st_mode & 07777, file, text);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
int main(int argc, char** argv) {
  char block[8192], name[256];
  memset(block, 'x', sizeof block);
  setvbuf(stdout, 0, _IONBF, 0);
  printf("began\n");
  for (int i = 1; i < argc; i++) { look(argv[i], "seed"); look(argv[i], "unsynced"); }
  for (int i = 1; i < argc; i++) {
    snprintf(name, sizeof name, "%s/unsynced", argv[i]);
    int f = open(name, O_WRONLY | O_CREAT, 0644);
    if (f >= 0) { (void)!write(f, "fresh", 5); close(f); }
  }
  for (int n = 1;; n++) {
    for (int i = 1; i < argc; i++) {
      snprintf(name, sizeof name, "%s/log", argv[i]);
      double began = now();
      int f = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
      int ok = f >= 0 && write(f, block, sizeof block) == sizeof block && (getenv("NEVER_SYNCS") || fsync(f) == 0);
      int err = errno;
      double took = now() - began;
      printf("%s %d %s in %s\n", argv[i], n, ok ? "ok" : strerror(err), took >= 40 ? "long" : "short");
      if (f >= 0) close(f);
    }
    printf("round %d\n", n);
    usleep(20000);
  }
}
C
gcc -static -g -O1 -o keeper keeper.c
mkdir -p root/bin root/data root/declared root/layer root/memory root/user root/shared root/etc root/tmp
cp keeper root/bin/
for folder in data declared layer; do echo "of the image" > root/$folder/seed; done
chmod 750 root/data
chown -R 4321:4321 root/data root/declared root/layer root/shared root/user
echo 'keeper:x:4321:4321::/data:/bin/false' > root/etc/passwd
import_image root localhost/rosekeeper:1 --change 'ENTRYPOINT ["/bin/keeper"]' --change 'USER keeper' \
  --change 'VOLUME /declared'
mkdir user
echo "of the user" > user/seed
chown -R 4321:4321 user
cat > compose.yaml <<'YAML'
services:
  db:
    image: localhost/rosekeeper:1
    command: [/data, /declared, /unnamed, /user, /shared, /layer, /memory]
    restart: always
    tmpfs: ["/memory:mode=1777"]
    volumes: ["data:/data", "/unnamed", "./user:/user", "shared:/shared"]
  side:
    image: localhost/rosekeeper:1
    command: [/shared, /data]
    volumes: ["shared:/shared"]
volumes:
  data:
  shared:
YAML
cat > workload.sh <<'SH'
#!/bin/sh
until grep -q "$UNTIL" "${OF:-db}/stdout.log"; do sleep 0.05; done
SH
chmod +x workload.sh
cat > rose.toml <<TOML
name = "volumes"
[deployment]
engine = $engine_toml
compose = "compose.yaml"
[workload]
command = ["./workload.sh"]
timeout = "100s"
[oracle]
command = ["true"]
TOML
# has NODE LINE: checks that the node printed this line in the last run.
has() { grep -qE -- "^$2\$" "$run/$1/stdout.log"; }
had() { has "$1" "$2" || { fail "$1 has no line '$2': $(cut -c-200 "$run/$1/stdout.log" | head -30)"; }; }
had_not() { ! has "$1" "$2" || fail "$1 has the line '$2'"; }
runs() {  # STATUS SCHEDULE OPTION...
  expect "$1" "$rose" replay "$2" -c "${config:-rose.toml}" --runs 1 --keep --json "${@:3}"
  run=$(json 'j["run_results"][0]["directory"]')
  no_volumes "after $2"
}
no_volumes() {
  local left
  left=$(podman volume ls -q)
  [ -z "$left" ] || fail "volumes left $1: $left"
  left=$(grep -E "$store|$work" /proc/self/mountinfo | grep -v ' /run/netns' |
    grep -E ' - (tmpfs|ext4|overlay) rose' || true)
  [ -z "$left" ] || fail "file systems left $1: $left"
}
full="No space left on device in (short|long)"

# --- a full disk: only the volumes are full, and only for a while
cat > full.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "disk-full"
node = "db"
when = [ { log = "^round 3$" } ]
until = [ { log = "/user .* No space" }, { log = "/memory .* ok" } ]
TOML
cat > after.sh <<'SH'
#!/bin/sh
# Wait until the disk was full and has room again.
until awk '/^\/data .*No space/ { full = 1 } full && /^\/data .* ok/ { found = 1 } END { exit !found }' db/stdout.log
do sleep 0.05; done
SH
chmod +x after.sh
sed 's|./workload.sh|./after.sh|' rose.toml > after.toml
config=after.toml runs 0 full.toml
json_is '[f["effective"] for f in j["faults"]]' '[1]'
for folder in /data /declared /unnamed /user /shared; do had db "$folder [0-9]+ $full"; done
for folder in /layer /memory; do had_not db "$folder [0-9]+ $full"; done
had db "/data [0-9]+ ok in (short|long)"
# The files of the image and of the user are there, with their owner and mode.
had db "/data belongs to 4321 with mode 750 and holds seed: of the image"
had db "/declared belongs to 4321 with mode 755 and holds seed: of the image"
had db "/user belongs to 4321 with mode 755 and holds seed: of the user"
[ "$(ls user)" = seed ] || fail "the user's folder was changed: $(ls user)"

# --- the other service of a shared volume finds no room either, because it is one disk; its own folder has room
cat > shared.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "disk-full"
node = "db"
path = "/shared"
when = [ { log = "^round 3$" } ]
TOML
OF=side UNTIL='^/shared [0-9]* No space' runs 0 shared.toml
had_not db "/data [0-9]+ $full"
had_not side "/data [0-9]+ $full"

# --- a folder that is no volume, but that the fault names
sed 's|"/shared"|"/layer"|' shared.toml > layer.toml
UNTIL='^/layer [0-9]* No space' runs 0 layer.toml
had db "/layer belongs to 4321 with mode 755 and holds seed: of the image"
had_not db "/data [0-9]+ $full"

# --- a slow disk is slow only while the fault lasts
cat > slow.toml <<'TOML'
version = 1
[[fault]]
id = "slow"
kind = "disk-slow"
node = "db"
delay = "20ms"
when = [ { log = "^round 3$" } ]
TOML
UNTIL='^/shared [0-9]* ok in long' runs 0 slow.toml
json_is '[f["effective"] for f in j["faults"]]' '[1]'
had db "/data [0-9]+ ok in long"
had db "/user belongs to 4321 with mode 755 and holds seed: of the user"

# Call this after the restart of the node: before it, the other service may not have written the file yet.
keeps_shared() {
  grep '^/shared .* unsynced: ' "$run/db/stdout.log" | tail -1 | grep -q 'fresh$' ||
    fail "what two services share lost something: $(grep '^/shared .* unsynced' "$run/db/stdout.log")"
}
# --- power loss: data that was not synced is gone, data from the image is not
cat > power.toml <<'TOML'
version = 1
[[fault]]
id = "power"
kind = "crash"
node = "db"
lose = "unsynced"
path = "/data"
when = [ { log = "^round 3$" } ]
TOML
cat > twice.sh <<'SH'
#!/bin/sh
until [ "$(grep -c '^began' db/stdout.log)" = 2 ] && [ "$(grep -c '^round 1$' db/stdout.log)" = 2 ]; do sleep 0.05; done
SH
chmod +x twice.sh
sed 's|./workload.sh|./twice.sh|; s|compose.yaml|careless.yaml|' rose.toml > twice.toml
sed 's|^    restart: always|&\n    environment: [NEVER_SYNCS=1]|' compose.yaml > careless.yaml
config=twice.toml runs 0 power.toml
[ "$(grep -c '^/data belongs to 4321 with mode 750 and holds seed: of the image$' "$run/db/stdout.log")" = 2 ] ||
  fail "the volume lost what the image has there: $(grep seed "$run/db/stdout.log")"
# /data has lost the file that was not synced, and the other volumes have not.
[ "$(grep -c '^/data .* unsynced: nothing$' "$run/db/stdout.log")" = 2 ] || fail "/data lost nothing"
keeps_shared

sed '/^path/d' power.toml > whole.toml
config=twice.toml runs 0 whole.toml
for folder in /data /declared /user; do
  [ "$(grep -c "^$folder .* unsynced: nothing$" "$run/db/stdout.log")" = 2 ] || fail "$folder lost nothing"
done
keeps_shared
had db "/user belongs to 4321 with mode 755 and holds seed: of the user"

# --- impossible faults are refused with a reason
sed 's|"/data"|"/shared"|' power.toml > refused.toml
UNTIL=began expect 2 "$rose" replay refused.toml -c rose.toml --runs 1
says err 'volume shared at /shared is mounted in 2 nodes: it cannot lose power while one of them runs'
sed 's|"/data"|"/memory"|' power.toml > refused.toml
UNTIL=began expect 2 "$rose" replay refused.toml -c rose.toml --runs 1
says err 'needs a disk at /memory of node db, but this folder is held in memory'
sed 's|"/shared"|"/user/inner"|' shared.toml > refused.toml
UNTIL=began expect 2 "$rose" replay refused.toml -c rose.toml --runs 1
says err 'but it is a part of /user, a folder of this machine'
{ cat slow.toml; sed '1d; s|"full"|"more"|; s|"db"|"side"|; s|^kind.*|kind = "disk-full"|' shared.toml; } > refused.toml
UNTIL=began expect 2 "$rose" replay refused.toml -c rose.toml --runs 1
says err 'volume shared at /shared: a disk that gets full cannot also lose power or be slow'
no_volumes "after refusals"

# --- runs without disk faults use the engine's own volumes
printf 'version = 1\n[[fault]]\nid = "stall"\nkind = "pause"\nnode = "side"\nduration = "10ms"\n' > stall.toml
cat > plain.sh <<'SH'
#!/bin/sh
until grep -q '^round 3$' db/stdout.log; do sleep 0.05; done
grep ' /data ' "/proc/$(cat "$ROSE_PIDFILE_db")/mountinfo" > mounted
SH
chmod +x plain.sh
sed 's|./workload.sh|./plain.sh|' rose.toml > plain.toml
config=plain.toml runs 0 stall.toml
! grep -q ' rose-' "$run/mounted" || fail "a run without a disk fault has a disk of its own: $(cat "$run/mounted")"

# --- when rose is killed while the disk is full or slow
for fault in full slow; do
  [ $fault = full ] && sign='^/data .* No space' || sign='^/shared .* in long'
  UNTIL=never signalled KILL report-$fault/runs/run-0001/db/stdout.log "$sign" "$rose" replay $fault.toml -c rose.toml \
    --runs 1 --report report-$fault
  expect 0 "$rose" heal
  nothing_left "after heal ($fault)"
  no_containers "after heal ($fault)"
  no_volumes "after heal ($fault)"
done
UNTIL=never signalled INT report-int/runs/run-0001/db/stdout.log '^/data .* No space' "$rose" replay full.toml \
  -c rose.toml --runs 1 --report report-int
nothing_left "after Ctrl-C"
no_containers "after Ctrl-C"
no_volumes "after Ctrl-C"
