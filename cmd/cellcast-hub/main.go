// Command cellcast-hub is the hub: it answers placements, mints credentials
// and keeps the registry's conditions.
package main

import (
	"os"
	"os/signal"
	"syscall"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"cellcast.io/cellcast/cmd/cellcast-hub/app"
)

func main() {
	// A standard output that nobody reads any more must make the hub refuse, for
	// the audit trail goes there, and not end it without a word.
	signal.Ignore(syscall.SIGPIPE)
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(cli.Run(app.NewCommand(ctx)))
}
