# Sourced after common.bash by the tests of tracers, in $work: a service that fails in its own way once a line comes: "miss NAME", "crash".

cat >service.sh <<'EOF'
#!/bin/bash
exec 3<>"$1"
while read -r what name <&3; do
  case $what in
  miss) : <"/rose-none/$name" ;;
  crash) bash -c 'kill -SEGV $$' ;;
  esac
done 2>/dev/null
EOF
chmod +x service.sh

# start_service PIPE: makes the pipe that its lines come by; $service is its pid.
start_service() {
  mkfifo "$1"
  ./service.sh "$1" &
  service=$!
}
