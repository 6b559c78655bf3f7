//go:build pinned
// +build pinned

// The version of Tendermint that this module pins; the install script builds it.
package pinned

import _ "github.com/tendermint/tendermint/cmd/tendermint"
