// Package revocation is what hub, agent and client agree on about credentials
// that can be ended: each is bound to an empty Secret on its cell, and dies with
// it. The hub creates the Secret, the cell's agent deletes it when its time is
// over, and the hub deletes it at once for the caller it was made for. Nobody
// keeps a list: the Secret's name follows from the caller and a nonce.
package revocation

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

// LabelSeconds marks the Secret of a revocable credential, and says after how
// many seconds from its creation it is to be deleted.
const LabelSeconds = "cellcast.io/revoke-after-seconds"

// The bounds of a revocable credential's time. The least is what an agent can
// be trusted to keep to; the most is the longest life of any credential.
const (
	MinTTL = time.Minute
	MaxTTL = 24 * time.Hour
)

// namePrefix begins the name of every such Secret.
const namePrefix = "cellcast-"

// Owner is the caller that a credential was issued to. All of it counts.
type Owner struct {
	// Class is the kind of caller, by the authenticator that ran.
	Class string
	// User is its name at the hub.
	User string
	// Issuer and Subject are those of its own token, where it has one.
	Issuer, Subject string
}

// SecretName is the name of the Secret that a credential of this owner and nonce
// is bound to. Without the nonce it can't be guessed, and with it no other
// owner comes to the same name.
func SecretName(o Owner, nonce string) string {
	hash := sha256.New()
	for _, part := range []string{o.Class, o.User, o.Issuer, o.Subject, nonce} {
		// The length first, so that no two owners run together.
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part))) // a hash takes everything
		hash.Write([]byte(part))
	}
	return namePrefix + hex.EncodeToString(hash.Sum(nil))
}

var base64url = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// ParseNonce refuses, with InvalidRequest under the path field, a nonce that is
// too short to be random, or not of the characters of base64url.
func ParseNonce(field, nonce string) *refusal.Refusal {
	if len(nonce) >= 22 && len(nonce) <= 64 && base64url.MatchString(nonce) {
		return nil
	}
	return refusal.Invalid(field, "must be 22 to 64 characters of A-Z, a-z, 0-9, '-' and '_', drawn at random")
}

// Label is the value of LabelSeconds for a credential of this time.
func Label(ttl time.Duration) string { return strconv.FormatInt(int64(ttl/time.Second), 10) }

// Deadline is when a Secret that was created then and has this value of
// LabelSeconds is to be deleted. One whose label can't be read is due at once:
// nobody else would ever delete it.
func Deadline(created time.Time, label string) (time.Time, error) {
	seconds, err := strconv.ParseInt(label, 10, 64)
	if err != nil || seconds < 0 || seconds > int64(MaxTTL/time.Second) {
		return created, fmt.Errorf("label %s isn't a number of seconds up to %d", LabelSeconds, int64(MaxTTL/time.Second))
	}
	return created.Add(time.Duration(seconds) * time.Second), nil
}
