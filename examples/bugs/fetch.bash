# Sourced by the install scripts of bugs (and, with kind=systems, of systems) that come from a language's registry.
# Versions are pinned, checksums are stored beside the example, and each example has its own cache folder.
# If something is not available here, the script exits with status 77 and prints the reason.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/${kind:-bugs}/${bug:?}
log=$cache/install.log
mkdir -p "$cache"

. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

# need PROGRAM DEBIAN-PACKAGE: installs the package when the program is missing.
need() { command -v "$1" > /dev/null || debian "$2"; }

# go_build FOLDER PROGRAM PACKAGE: builds $cache/PROGRAM from PACKAGE, in the version that the module in FOLDER pins
# (go.mod, go.sum). It is rebuilt when the module's files or the file $links (if set) change. CGO_ENABLED=1 also
# compiles its C code.
go_build() {
  local stamp
  stamp=$(cat "$1"/go.mod "$1"/go.sum "$1"/*.go "${links:-/dev/null}" 2> /dev/null | sha256sum)
  if [ -x "$cache/$2" ] && [ "$(cat "$cache/$2.stamp" 2> /dev/null)" = "$stamp" ]; then return 0; fi
  need go golang-go
  if ! (cd "$1" && go mod download) >> "$log" 2>&1; then
    unavailable "the modules of $3 can't be had from the Go module proxy (see $log)"
  fi
  if ! (cd "$1" && CGO_ENABLED=${CGO_ENABLED:-0} go build -trimpath -buildvcs=false -o "$cache/$2.new" "$3") \
    >> "$log" 2>&1; then
    unavailable "$(go version) can't build $3 (see $log)"
  fi
  mv "$cache/$2.new" "$cache/$2"
  echo "$stamp" > "$cache/$2.stamp"
}

# maven_jars FOLDER: copies the dependencies of FOLDER/pom.xml to $cache/NAME (NAME: the last part of FOLDER), and
# checks each against FOLDER/sha256sums.
maven_jars() {
  local into
  into=$cache/$(basename "$1")
  if [ -d "$into" ] && (cd "$into" && sha256sum --quiet --strict -c "$1/sha256sums" > /dev/null 2>&1); then return 0; fi
  need javac default-jdk-headless
  need mvn maven
  rm -rf "$into" "$into.new"
  if ! mvn -q -B -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$into.new" >> "$log" 2>&1; then
    unavailable "the jars of $1/pom.xml can't be had from Maven Central (see $log)"
  fi
  if ! (cd "$into.new" && sha256sum --quiet --strict -c "$1/sha256sums") >> "$log" 2>&1; then
    unavailable "the jars of $1/pom.xml are not those whose checksums are kept (see $log)"
  fi
  mv "$into.new" "$into"
}

# java_classes FILE.java CLASSPATH [OPTION...]: compiles FILE.java to $cache/classes, against the jars of maven_jars.
java_classes() {
  local file=$1 path=$2
  shift 2
  if [ "$cache/classes" -nt "$file" ]; then return 0; fi
  rm -rf "$cache/classes" "$cache/classes.new"
  if ! javac "$@" -d "$cache/classes.new" -cp "$path" "$file" >> "$log" 2>&1; then
    unavailable "$(javac -version) can't compile $file (see $log)"
  fi
  mv "$cache/classes.new" "$cache/classes"
}
