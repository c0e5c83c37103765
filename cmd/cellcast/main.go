// Command cellcast is the client. Under the names kubectl-cellcast and
// kubectl-create-placement it's a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cellcast.io/cellcast/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.System())
	stop()
	os.Exit(code)
}
