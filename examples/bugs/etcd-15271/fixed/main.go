// Does what etcd's own main does. `go install` refuses to build that, because its module has local replacements.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
