package podidentity

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

const (
	// acceptFor is how long a cell's yes is good, and so how long after its end
	// a pod can still be taken for alive. The token's own end comes before it:
	// the claims are looked at each time.
	acceptFor = time.Minute
	// rejectFor is how long a cell's no is good: a token costs the cell one
	// review in that time, however often it's shown.
	rejectFor = 10 * time.Second
	// maxVerdicts is how many of either are kept for a cell, the last used.
	maxVerdicts = 4096
	// maxReviews is how many reviews a cell is asked for at once.
	maxReviews = 8
	// placePatience is how long a token waits to be one of them.
	placePatience = time.Second
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
)

// Reviewer is a cell that can be asked about a token.
type Reviewer interface {
	// CreateTokenReview returns the review as the cell has filled it in.
	CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)
}

// tokenReview asks the cell, and remembers what it said by the token's hash.
// Yes and no are kept apart, so that junk pushes no accepted token out.
type tokenReview struct {
	registration Registration
	cell         Reviewer
	accepted     *cache.LRUExpireCache
	rejected     *cache.LRUExpireCache
	flights      singleflight.Group
	places       chan struct{} // one per review under way
}

func newTokenReview(r Registration, cell Reviewer) *tokenReview {
	return &tokenReview{
		registration: r,
		cell:         cell,
		accepted:     cache.NewLRUExpireCache(maxVerdicts),
		rejected:     cache.NewLRUExpireCache(maxVerdicts),
		places:       make(chan struct{}, maxReviews),
	}
}

// Validate asks nothing about a token that is wrong by its own account, and
// once about one that many show at the same time. No one's departure ends the
// review that the others wait for.
func (v *tokenReview) Validate(ctx context.Context, token string) (Pod, error) {
	pod, failure := v.registration.unverified(token, time.Now())
	if failure != nil {
		return Pod{}, failure
	}
	hash := sha256.Sum256([]byte(token))
	flight := v.flights.DoChan(string(hash[:]), func() (any, error) {
		return v.verdict(context.WithoutCancel(ctx), hash, token, pod), nil
	})
	select {
	case <-ctx.Done():
		return Pod{}, v.registration.Target.fail(ReasonCellUnavailable, "the review wasn't waited for: %w", context.Cause(ctx))
	case result := <-flight:
		if failure, _ := result.Val.(*Failure); failure != nil {
			return Pod{}, failure
		}
		return pod, nil
	}
}

// verdict returns what is known of the token, or asks. Only what the cell has
// answered is kept.
func (v *tokenReview) verdict(ctx context.Context, hash [sha256.Size]byte, token string, pod Pod) *Failure {
	if _, ok := v.accepted.Get(hash); ok {
		return nil
	}
	if failure, ok := v.rejected.Get(hash); ok {
		return failure.(*Failure)
	}
	answer, failure := v.ask(ctx, token)
	if failure != nil {
		return failure
	}
	if failure := v.judge(answer.Status, pod); failure != nil {
		v.rejected.Add(hash, failure, rejectFor)
		return failure
	}
	v.accepted.Add(hash, nil, acceptFor)
	return nil
}

// ask waits for a place and then for the cell.
func (v *tokenReview) ask(ctx context.Context, token string) (*authenticationv1.TokenReview, *Failure) {
	patience := time.NewTimer(placePatience)
	defer patience.Stop()
	select {
	case v.places <- struct{}{}:
		defer func() { <-v.places }()
	case <-patience.C:
		return nil, v.registration.Target.fail(ReasonRateLimited, "%d reviews are under way at the cell", maxReviews)
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := v.cell.CreateTokenReview(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{v.registration.Audience}},
	})
	if err == nil && answer == nil {
		err = errors.New("there was no answer")
	}
	if err != nil {
		return nil, &Failure{Reason: ReasonCellUnavailable, Target: v.registration.Target, cause: withoutToken(err, token)}
	}
	return answer, nil
}

// judge compares the cell's answer with what the token says. Nothing of the
// answer is quoted, for it could repeat the token.
func (v *tokenReview) judge(status authenticationv1.TokenReviewStatus, pod Pod) *Failure {
	target := v.registration.Target
	switch {
	case !status.Authenticated:
		return target.fail(ReasonRejected, "the cell doesn't accept the token")
	case !slices.Contains(status.Audiences, v.registration.Audience):
		return target.fail(ReasonAudience, "the cell doesn't accept the token for %q", v.registration.Audience)
	case status.User.Username != v.registration.username():
		return target.fail(ReasonServiceAccount, "the cell doesn't take the token for %q's", v.registration.username())
	}
	names, uids := status.User.Extra[serviceaccount.PodNameKey], status.User.Extra[serviceaccount.PodUIDKey]
	switch {
	case len(names) == 0 || len(uids) == 0:
		return target.fail(ReasonNoPod, "the cell names no pod for the token")
	case !slices.Equal(names, []string{pod.Name}) || !slices.Equal(uids, []string{string(pod.UID)}):
		return target.fail(ReasonRejected, "the cell names another pod than the token, %q with UID %q", pod.Name, pod.UID)
	}
	return nil
}

// withoutToken is the error with a text that is free of the token, which
// whoever stands between could have sent back.
func withoutToken(err error, token string) error {
	text := strings.ReplaceAll(err.Error(), token, "[redacted]")
	signature := token[strings.LastIndex(token, ".")+1:]
	return &redacted{text: strings.ReplaceAll(text, signature, "[redacted]"), cause: err}
}

// redacted has the cause's identity and not its text. Unwrapping doesn't lead
// to the cause.
type redacted struct {
	text  string
	cause error
}

// Error is the text.
func (r *redacted) Error() string { return r.text }

// Is looks at the cause.
func (r *redacted) Is(target error) bool { return errors.Is(r.cause, target) }

// As looks at the cause.
func (r *redacted) As(target any) bool { return errors.As(r.cause, target) }
