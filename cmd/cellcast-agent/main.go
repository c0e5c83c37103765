// Command cellcast-agent is the reporter: it runs in a cell and tells the hub,
// with every heartbeat, how much of it is given away.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cellcast.io/cellcast/cmd/cellcast-agent/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
