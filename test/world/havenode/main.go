// Command havenode says in one line whether cells can have real nodes on this
// machine, and if not, why.
package main

import (
	"fmt"

	"cellcast.io/cellcast/test/world"
)

func main() {
	if err := world.HaveNode(); err != nil {
		fmt.Printf("node: %v; what needs a node is skipped\n", err)
		return
	}
	fmt.Println("node: real pods can run here")
}
