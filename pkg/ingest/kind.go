package ingest

// Kind is what an artifact is.
type Kind string

// KindCanary is the sign of life of a probe's canary. There are no others.
const KindCanary Kind = "canary"

// Kinds are all of them.
func Kinds() []Kind { return []Kind{KindCanary} }

// limit is the most bytes that an artifact of the kind has; none has no such
// kind.
func (k Kind) limit() int64 {
	switch k {
	case KindCanary:
		return 1 << 10
	default:
		return 0
	}
}
