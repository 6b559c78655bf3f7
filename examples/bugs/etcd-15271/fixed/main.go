// Starts etcd as its own main does. `go install` refuses that main, because its module on the proxy has local
// replacements.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
