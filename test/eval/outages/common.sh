# Functions that the outages share. Each outage sources this file.
set -eu

served() { # served N: waits until the workload has N acknowledgements
  tries=600
  until [ "$(cat acked.txt 2> /dev/null | wc -l)" -ge "$1" ]; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then echo "outage: nothing is acknowledged" >&2; exit 1; fi
    sleep 0.1
  done
}

pid_of() { # pid_of NODE: prints the process id of the node's main process
  eval "cat \"\$ROSE_PIDFILE_$1\""
}

inside() { # inside NODE COMMAND...: runs the command in the node's network namespace
  eval "inside_netns=\$ROSE_NETNS_$1"
  shift
  ip netns exec "$inside_netns" "$@"
}

stand() { # stand SECONDS UNDO: waits, and then runs UNDO, even if the wait is interrupted
  trap "$2; exit 1" HUP INT TERM
  sleep "$1" &
  wait $!
  trap - HUP INT TERM
  eval "$2"
}

unplug() { # unplug NODE SECONDS: takes the node's network interface down for this time
  eval "unplug_ip=\$ROSE_IP_$1"
  cable=$(inside "$1" ip -o -4 addr show | awk -v ip="$unplug_ip/" 'index($4, ip) == 1 { print $2 }')
  inside "$1" ip link set "$cable" down
  stand "$2" "inside $1 ip link set $cable up"
}

freeze() { # freeze NODE SECONDS: stops all processes of the node, as if its machine were being moved
  eval "freeze_cgroup=\$ROSE_CGROUP_$1"
  pids=$(find "$freeze_cgroup" -name cgroup.procs -exec cat {} +)
  kill -STOP $pids
  stand "$2" "kill -CONT $pids"
}

fill() { # fill NODE FOLDER SECONDS: fills the volume of the folder with another file, which is then removed
  crowd=$ROSE_RUN_DIR/$1/$2/core.4711
  for _ in $(seq $(($3 * 10))); do
    cat /dev/zero >> "$crowd" 2> /dev/null || true
    sleep 0.1
  done
  rm -f "$crowd"
}
