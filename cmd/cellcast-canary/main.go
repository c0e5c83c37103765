// Command cellcast-canary is the pod by which a probe tries a brought target: it
// shows the hub the token that the target gave it, once, and ends.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cellcast.io/cellcast/cmd/cellcast-canary/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(app.Run(ctx, os.Getenv, os.Stdout))
}
