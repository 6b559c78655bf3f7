// Whose code a function of a Go program is.
#pragma once

#include <string>
#include <string_view>

namespace rose::symbols {

// Whether a function ("crypto/sha256.(*digest).Write") whose source is `file` is of Go's own packages. Those have no
// host in their path, and their files lie in folders of their names: below a GOROOT's src, or, of a program built with
// -trimpath, below nothing. Where no file is known ("") the name alone tells.
[[nodiscard]] bool of_go_library(std::string_view function, std::string_view file);

// The module that a source file is of, as far as its path says: "github.com/tendermint/tendermint" of
// ".../pkg/mod/github.com/tendermint/tendermint@v0.34.0/x.go", "go.etcd.io/etcd" of "go.etcd.io/etcd/raft/raft.go". ""
// where it does not.
[[nodiscard]] std::string go_module(std::string_view file);

}  // namespace rose::symbols
