//go:build pinned

// The version of nats-server that this module pins; the install script builds it.
package pinned

import _ "github.com/nats-io/nats-server/v2"
