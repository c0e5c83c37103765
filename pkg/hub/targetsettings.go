package hub

import (
	"time"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

// LeastRescan is the least time between two looks at a target.
const LeastRescan = 10 * time.Second

// TargetSettings are what an operator decides about brought targets.
type TargetSettings struct {
	// TokenDir is the folder for the targets' tokens, of this replica alone, which
	// must be on tmpfs unless TokenDirAnywhere. Empty means that the hub takes no
	// targets.
	TokenDir         string
	TokenDirAnywhere bool
	// Addresses are where the hub connects to for a target.
	Addresses address.Options
	// CanaryImage is the image of the pod that a probe starts. Without it no
	// target becomes Ready.
	CanaryImage string
	// IngestCAFile has the certificates by which pods check the external listener.
	// Empty means the roots of their image.
	IngestCAFile string
	// Rescan is how often a target's credential and API are looked at.
	Rescan time.Duration
	// PostsPerSecond bounds the posts to the external listener that cost more than
	// a look; PostsPerSource those of one address. 0 is no limit.
	PostsPerSecond, PostsPerSource float64
	// Vault is where vaultRefs are read; without an address none is.
	Vault VaultSettings
}

// VaultSettings are a Vault or OpenBao, and how the hub comes in.
type VaultSettings struct {
	// Address is its https URL. CAFile has the certificates to check it by; empty
	// means the system's.
	Address, CAFile string
	// Namespace is that of Vault Enterprise; empty means none.
	Namespace string
	// Mount is that of the KV version 2 engine.
	Mount string
	// AuthMount, Role and Audience are those of the Kubernetes auth method.
	AuthMount, Role, Audience string
}

func defaultTargetSettings() TargetSettings {
	return TargetSettings{
		Rescan:         5 * time.Minute,
		PostsPerSecond: 200,
		PostsPerSource: 20,
		Vault:          VaultSettings{Mount: "cellcast", AuthMount: "kubernetes", Role: "cellcast-hub", Audience: "vault"},
	}
}
