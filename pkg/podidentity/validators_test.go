package podidentity

import (
	"testing"
)

func TestValidatorLastsAsLongAsItsRegistration(t *testing.T) {
	tests := map[string]struct {
		change func(*Registration)
		same   bool // validator
		reads  int  // of keys, when both have checked a token
	}{
		"nothing changes":             {func(*Registration) {}, true, 1},
		"the namespace changes":       {func(r *Registration) { r.Namespace = "new" }, false, 1},
		"the ServiceAccount changes":  {func(r *Registration) { r.ServiceAccount = "new" }, false, 1},
		"the audience changes":        {func(r *Registration) { r.Audience = "new" }, false, 1},
		"the issuer changes":          {func(r *Registration) { r.Issuer = "https://new" }, false, 1},
		"the CA changes":              {func(r *Registration) { r.CABundle = "new" }, false, 2},
		"the endpoint changes":        {func(r *Registration) { r.Endpoint = "https://new" }, false, 2},
		"another target has all else": {func(r *Registration) { r.Target.UID = "t2" }, false, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed := brought
			tc.change(&changed)
			key := newKey(t, "k")
			a := &api{keys: []signingKey{key}}
			validators := New(fleetOf{brought.Endpoint: a, changed.Endpoint: a})
			var made []Validator
			for _, r := range []Registration{brought, changed} {
				v, err := validators.For(r)
				if err != nil {
					t.Fatal(err)
				}
				claims := podClaims().with(object{
					"iss": r.Issuer, "aud": r.Audience, "sub": "system:serviceaccount:" + r.Namespace + ":" + r.ServiceAccount,
					"kubernetes.io": bound(r.Namespace, r.ServiceAccount, object{"name": "work-1", "uid": "u1"}),
				})
				pod, err := v.Validate(t.Context(), key.token(t, claims))
				if want := (Pod{r.Namespace, r.ServiceAccount, "work-1", "u1", r.Target}); err != nil || pod != want {
					t.Errorf("got %+v and %v, want %+v", pod, err, want)
				}
				made = append(made, v)
			}
			if got := made[0] == made[1]; got != tc.same {
				t.Errorf("the same validator: %t, want %t", got, tc.same)
			}
			if reads, _ := a.counts(); reads != tc.reads {
				t.Errorf("%d reads of keys, want %d", reads, tc.reads)
			}
		})
	}
}

func TestForgottenTargetStartsAnew(t *testing.T) {
	key := newKey(t, "k")
	a := &api{keys: []signingKey{key}}
	validators := New(fleetOf{brought.Endpoint: a})
	for range 2 {
		v, err := validators.For(brought)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Validate(t.Context(), key.token(t, podClaims())); err != nil {
			t.Fatal(err)
		}
		validators.Forget(brought.Target)
	}
	if reads, _ := a.counts(); reads != 2 {
		t.Errorf("%d reads of keys, want 2", reads)
	}
	if got := len(validators.entries); got != 0 {
		t.Errorf("%d validators are kept, want 0", got)
	}
}

func TestOneUIDHasAValidatorPerMode(t *testing.T) {
	key := newKey(t, "k")
	a := &api{keys: []signingKey{key}}
	validators := New(fleetOf{brought.Endpoint: a})
	reviewed := brought
	reviewed.Target.Mode = ModeTokenReview
	for _, r := range []Registration{brought, reviewed, brought} {
		v, err := validators.For(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Validate(t.Context(), key.token(t, podClaims())); err != nil {
			t.Fatal(err)
		}
	}
	if reads, reviews := a.counts(); reads != 1 || reviews != 1 {
		t.Errorf("%d reads of keys and %d reviews, want 1 and 1", reads, reviews)
	}
}

func TestRegistrationThatLacksSomethingIsRefused(t *testing.T) {
	tests := map[string]struct {
		from   Registration
		change func(*Registration)
		err    string
	}{
		"without a UID":                     {brought, func(r *Registration) { r.Target.UID = "" }, "pods of target: can't be proven: the registration has no UID"},
		"without an audience":               {fleet, func(r *Registration) { r.Audience = "" }, "pods of cell:c1 can't be proven: the registration has no audience"},
		"without a namespace":               {fleet, func(r *Registration) { r.Namespace = "" }, "pods of cell:c1 can't be proven: the registration has no namespace"},
		"without a ServiceAccount":          {brought, func(r *Registration) { r.ServiceAccount = "" }, "pods of target:t1 can't be proven: the registration has no ServiceAccount"},
		"a target's without an issuer":      {brought, func(r *Registration) { r.Issuer = "" }, "pods of target:t1 can't be proven: the registration has no issuer"},
		"a cell's may be without an issuer": {fleet, func(r *Registration) { r.Issuer = "" }, ""},
		"without a mode":                    {brought, func(r *Registration) { r.Target.Mode = "" }, `pods of t1 can't be proven: there is no mode ""`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.change(&tc.from)
			v, err := New(fleetOf{tc.from.Endpoint: {}}).For(tc.from)
			if got := text(err); got != tc.err || (v == nil) != (tc.err != "") {
				t.Errorf("got %v and error %q, want %q", v, got, tc.err)
			}
		})
	}
}

func TestReasonsThatMayClear(t *testing.T) {
	clears := map[Reason]bool{ReasonKeysUnavailable: true, ReasonCellUnavailable: true, ReasonRateLimited: true}
	seen := map[Reason]bool{}
	for _, r := range append(Reasons(), "Unheard") {
		if seen[r] {
			t.Errorf("%s is there twice", r)
		}
		seen[r] = true
		if got := r.MayClear(); got != clears[r] {
			t.Errorf("%s may clear: %t, want %t", r, got, clears[r])
		}
	}
	if got, want := len(seen), 17; got != want {
		t.Errorf("%d reasons, want %d", got, want)
	}
}
