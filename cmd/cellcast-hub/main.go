// Command cellcast-hub is the hub: it answers placements, mints credentials
// and keeps the registry's conditions.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"cellcast.io/cellcast/cmd/cellcast-hub/app"
)

func main() {
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(cli.Run(app.NewCommand(ctx)))
}
