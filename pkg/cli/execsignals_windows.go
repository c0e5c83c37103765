package cli

import "os"

// handedOn are the signals that are taken here, so that the credential is handed
// back. The console sends them to the command too.
func handedOn() []os.Signal { return []os.Signal{os.Interrupt} }

// sentByTerminal is always so here.
func sentByTerminal(os.Signal) bool { return true }
