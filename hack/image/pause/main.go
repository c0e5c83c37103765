// Command pause does nothing until it's told to end. It holds namespaces: in its
// image those of a pod, and as the first process of a node of test/world those of
// the node. As the first process of a namespace it's also the parent of whatever
// has lost its own, and those it lets go without waiting for them.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGCHLD) // the kernel then keeps no zombie for us
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
}
