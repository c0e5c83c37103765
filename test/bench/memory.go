package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/seal"
	"cellcast.io/cellcast/test/fleet"
)

const (
	// sealedMints is how many tokens are looked for, and idle how long the hub
	// has to forget them.
	sealedMints = 100
	idle        = time.Minute
	// pieceLength is the length of a piece of a signature: nobody has the rest by
	// chance.
	pieceLength = 32
)

// measureMemory has a hub mint sealed tokens and counts those that are still in
// the memory of its process: at once, and after a minute in which nobody asks.
// Go clears nothing that it frees, so that what was in use stays until other
// data takes the place. The hub has this program's environment: with
// GODEBUG=clobberfree=1 the garbage collector overwrites what it frees.
func measureMemory(ctx context.Context, r *report) error {
	return withFleet(ctx, func(f *fleet.Fleet) error {
		if err := permit(ctx, f); err != nil {
			return err
		}
		client, err := f.Pipeline(repositoryID)
		if err != nil {
			return err
		}
		if err := f.Eventually(ctx, "a token is minted", func(ctx context.Context) error {
			_, err := mintSealed(ctx, client)
			return err
		}); err != nil {
			return err
		}
		var signatures []string
		for range sealedMints {
			signature, err := mintSealed(ctx, client)
			if err != nil {
				return err
			}
			signatures = append(signatures, signature)
		}
		r.say("\nMemory: %d sealed mints, one after the other. A token counts where its whole signature is in the memory of the hub's"+
			"\nprocess; copies are all places; a piece is %d characters from either end or the middle of one.", sealedMints, pieceLength)
		if err := searchMemory(r, f.Hub.Server.PID(), "at_once", signatures); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(idle):
		}
		return searchMemory(r, f.Hub.Server.PID(), "after_60s", signatures)
	})
}

// mintSealed returns the signature of a token that came sealed.
func mintSealed(ctx context.Context, client versioned.Interface) (string, error) {
	key, err := seal.NewKey()
	if err != nil {
		return "", err
	}
	answer := &cellcastv1alpha1.Placement{}
	err = client.CellcastV1alpha1().RESTClient().Post().Resource("placements").MaxRetries(0).
		Body(&cellcastv1alpha1.Placement{Spec: cellcastv1alpha1.PlacementSpec{Workload: workload, Recipient: key.Recipient()}}).
		Do(ctx).Into(answer)
	if err != nil {
		return "", err
	}
	if answer.Status.Credential == nil {
		return "", errors.New("the answer has no credential")
	}
	token, err := key.Open(answer.Status.Credential.SealedToken)
	if err != nil {
		return "", err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(parts[2]) < 3*pieceLength {
		return "", errors.New("the credential is no signed token")
	}
	return parts[2], nil
}

// searchMemory writes how many of the signatures are in the memory of a process.
func searchMemory(r *report, pid int, when string, signatures []string) error {
	whole, pieces := newNeedles(), newNeedles()
	for i, s := range signatures {
		middle := len(s) / 2
		whole.add(s, i)
		pieces.add(s[:pieceLength], i)
		pieces.add(s[middle:middle+pieceLength], i)
		pieces.add(s[len(s)-pieceLength:], i)
	}
	read, err := eachChunk(pid, len(signatures[0]), func(chunk []byte) {
		whole.search(chunk)
		pieces.search(chunk)
	})
	if errors.Is(err, errUnreadable) {
		r.say("what the hub's memory holds isn't measured: %v", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	r.result("hub_memory_tokens_"+when, float64(len(whole.found)), "tokens")
	r.result("hub_memory_copies_"+when, float64(whole.copies), "copies")
	r.result("hub_memory_pieces_"+when, float64(len(pieces.found)), "tokens")
	r.result("hub_memory_read_"+when, float64(read>>20), "MiB")
	return nil
}
