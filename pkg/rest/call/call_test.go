package call

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/refusal"
)

func TestFromNeedsAnIdentity(t *testing.T) {
	if _, err := From(t.Context(), time.Now()); !apierrors.IsUnauthorized(err) {
		t.Errorf("got %v, want 401", err)
	}
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "dana", Groups: []string{"developers"}})
	c, err := From(ctx, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if c.ID == "" || c.Caller.Class != caller.ClassHubUser || c.Caller.User != "dana" {
		t.Errorf("got %+v", c)
	}
}

func TestEndTellsARefusalFromAFault(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for sentence, tt := range map[string]struct {
		err     error
		outcome audit.Outcome
		code    refusal.Code
	}{
		"no error":                {nil, audit.OutcomeAllowed, ""},
		"a refusal":               {refusal.New(refusal.NoPolicy, "no"), audit.OutcomeRefused, refusal.NoPolicy},
		"a cell that isn't there": {apierrors.NewNotFound(schema.GroupResource{Resource: "cells"}, "boom"), audit.OutcomeRefused, ""},
		"a fault":                 {errors.New("boom"), audit.OutcomeFailed, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			var record audit.Record
			End(&record, tt.err, noon, noon.Add(1500*time.Microsecond))
			if record.Outcome != tt.outcome || record.Refusal != tt.code || record.DurationMS != 1.5 {
				t.Errorf("got %+v", record)
			}
			if strings.Contains(record.Message, "boom") {
				t.Error("the trail repeats a fault")
			}
		})
	}
}

// keeper keeps the last record, or loses it.
type keeper struct {
	record audit.Record
	lost   error
}

func (k *keeper) Write(r audit.Record) error {
	k.record = r
	return k.lost
}

func TestConcludeLosesNoError(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused, lost := refusal.New(refusal.NoPolicy, "no"), errors.New("no space left on device")
	for sentence, tt := range map[string]struct {
		err, lost error
		want      refusal.Code
		outcome   audit.Outcome
	}{
		"all is well": {nil, nil, "", audit.OutcomeAllowed},
		"a refusal stays what it is where it's recorded": {refused, nil, refusal.NoPolicy, audit.OutcomeRefused},
		"and where it isn't":                             {refused, lost, refusal.NoPolicy, audit.OutcomeRefused},
		"what isn't recorded doesn't go well":            {nil, lost, refusal.MintUnavailable, audit.OutcomeAllowed},
	} {
		t.Run(sentence, func(t *testing.T) {
			trail := &keeper{lost: tt.lost}
			err := Conclude(trail, audit.Record{Event: audit.EventMint}, tt.err, noon, noon.Add(time.Second), refusal.MintUnavailable)
			if got := refusal.As(err); (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want || (err == nil) != (got == nil) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if trail.record.Outcome != tt.outcome || trail.record.DurationMS != 1000 || trail.record.Event != audit.EventMint {
				t.Errorf("recorded %+v", trail.record)
			}
		})
	}
}

func TestATrailThatCantBeWrittenIsARefusalThatMayClear(t *testing.T) {
	lost := errors.New("write /dev/stdout: no space left on device")
	r := Unaudited(refusal.MintUnavailable, lost)
	if r.Code != refusal.MintUnavailable || !errors.Is(r, lost) || !r.Code.Meaning().MayClear {
		t.Errorf("got %+v", r)
	}
	if answer := (Call{ID: "id-1"}).Answer(t.Context(), r); strings.Contains(answer.Error(), "/dev/stdout") {
		t.Errorf("the caller reads the hub's own fault: %v", answer)
	}
}

func TestAnswerHidesAFault(t *testing.T) {
	c := Call{ID: "id-1"}
	if got := c.Answer(t.Context(), errors.New("dial tcp 10.1.2.3")); strings.Contains(got.Error(), "10.1.2.3") || !strings.Contains(got.Error(), "id-1") {
		t.Errorf("got %v", got)
	}
	if got := c.Answer(t.Context(), nil); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestCutBoundsACellsOwnText(t *testing.T) {
	if got := cut(errors.New(strings.Repeat("x", 1<<20))); len(got) != maxCause {
		t.Errorf("%d bytes are logged", len(got))
	}
}
