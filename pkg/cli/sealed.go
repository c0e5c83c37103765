package cli

import (
	"context"
	"errors"
	"fmt"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/seal"
)

// errUnsealed says that the token came in the clear though a key was sent.
var errUnsealed = errors.New("the hub answered with a token that isn't sealed, though it was given a key: something on the way took the key out, " +
	"and may have read the token")

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

// open opens the token of the cell's credential in its place. Where the token
// isn't sealed, or can't be opened, somebody else may have it: the credential is
// ended at once, if it can be, and the error says whether it was.
func (h *hub) open(ctx context.Context, key *seal.Key, cell string, c *cellcastv1alpha1.Credential) error {
	err := unseal(key, c)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; nothing was kept of it, and %s. Tell the platform team", err, h.discard(ctx, cell, *c))
}

// unseal opens a token in its place. One that came in the clear is refused, and
// not kept.
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
