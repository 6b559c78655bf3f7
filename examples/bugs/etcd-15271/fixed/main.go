// etcd as its own main does it; the module on the proxy has local replacements, so `go install` refuses that.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
