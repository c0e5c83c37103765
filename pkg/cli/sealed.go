package cli

import (
	"errors"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/seal"
)

// errUnsealed says that the token came in the clear though a key was sent.
var errUnsealed = errors.New("the hub answered with a token that isn't sealed, though it was given a key: something on the way took the key out, " +
	"and may have read the token; nothing was kept of it. Tell the platform team")

// sealing returns a key for one answer and its public half; none for a dry run,
// whose answer holds nothing to seal.
func sealing(dryRun bool) (*seal.Key, *cellcastv1alpha1.Recipient, error) {
	if dryRun {
		return nil, nil, nil
	}
	key, err := seal.NewKey()
	if err != nil {
		return nil, nil, err
	}
	return key, key.Recipient(), nil
}

// unseal opens the credential's token in its place. A token that came in the
// clear is refused, and not kept.
func unseal(key *seal.Key, c *cellcastv1alpha1.Credential) error {
	if key == nil || c == nil {
		return nil
	}
	clear, sealed := c.Token, c.SealedToken
	c.Token, c.SealedToken = "", ""
	switch {
	case clear != "":
		return errUnsealed
	case sealed == "":
		return nil // the caller misses the token itself
	}
	var err error
	c.Token, err = key.Open(sealed)
	return err
}
