package v1alpha1

// ClusterState says whether a cell takes new placements and serves traffic.
// +kubebuilder:validation:Enum=LIVE;DARK;DRAINING
type ClusterState string

// The states of a cell.
const (
	// StateLive takes placements and serves.
	StateLive ClusterState = "LIVE"
	// StateDark takes only placements that ask for a dark cell; it does not serve.
	StateDark ClusterState = "DARK"
	// StateDraining takes no placement, not even a dark one; it still serves.
	StateDraining ClusterState = "DRAINING"
)

// AcceptsPlacement reports whether a cell in this state takes a placement; dark
// says that the caller asked for a dark cell and may have one. A dark request
// is for dark cells alone. An unknown state accepts nothing.
func (s ClusterState) AcceptsPlacement(dark bool) bool {
	switch s {
	case StateLive:
		return !dark
	case StateDark:
		return dark
	case StateDraining:
		return false
	default:
		return false
	}
}

// ServesProductionTraffic reports whether a cell in this state serves.
func (s ClusterState) ServesProductionTraffic() bool {
	switch s {
	case StateLive, StateDraining:
		return true
	case StateDark:
		return false
	default:
		return false
	}
}

// LabelEnv is the label of a Cluster that sets how long its credentials live:
// prod or production, stage or staging, dev or development; anything else
// counts as production.
const LabelEnv = "env"
