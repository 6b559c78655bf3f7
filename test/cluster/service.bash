# Sourced after common.bash by tests of tracers that run in $work. It starts a service that fails on request, by a line
# "miss NAME" or "crash".

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

# start_service PIPE: starts the service, and creates the pipe for its lines. $service is its process id.
start_service() {
  mkfifo "$1"
  ./service.sh "$1" &
  service=$!
}
