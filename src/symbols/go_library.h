// Determines whether a function of a Go program belongs to the Go distribution or to a module.
#pragma once

#include <string>
#include <string_view>

namespace rose::symbols {

// True if the function (for example "crypto/sha256.(*digest).Write") belongs to the Go distribution. `file` is its
// source file. The path of a standard package contains no host name, and its files are in a folder with the same path.
// In `file`, this path comes after the src folder of a GOROOT; with -trimpath, `file` begins with it. If the file is
// unknown ("") or has no folder, the name alone decides.
[[nodiscard]] bool of_go_library(std::string_view function, std::string_view file);

// The module of a source file, according to the path of the file: "github.com/tendermint/tendermint" for
// ".../pkg/mod/github.com/tendermint/tendermint@v0.34.0/x.go", "go.etcd.io/etcd" for "go.etcd.io/etcd/raft/raft.go". ""
// if the path does not show the module.
[[nodiscard]] std::string go_module(std::string_view file);

}  // namespace rose::symbols
