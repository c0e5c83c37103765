package targets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

// asksForAToken asks as somebody.
func (b *brought) asksForAToken(client versioned.Interface, spec cellcastv1alpha1.TargetTokenSpec, dryRun ...string) (cellcastv1alpha1.TargetTokenStatus, error) {
	request := asked(client, b.name, b.name, "token", &cellcastv1alpha1.TargetToken{Spec: spec})
	for _, value := range dryRun {
		request = request.Param("dryRun", value)
	}
	answer := &cellcastv1alpha1.TargetToken{}
	err := request.Do(b.t.Context()).Into(answer)
	return answer.Status, err
}

// asksOnceReady asks as the owner of a target whose row says that it's Ready. What
// the hub has seen of the row may be a moment older.
func (b *brought) asksOnceReady(spec cellcastv1alpha1.TargetTokenSpec) (answer cellcastv1alpha1.TargetTokenStatus, err error) {
	_ = poll(b.t.Context(), time.Minute, func(context.Context) error {
		answer, err = b.asksForAToken(b.hub, spec)
		if refused, ok := refusal.FromStatus(err); ok && refused.Code == refusal.TargetNotReady {
			return err
		}
		return nil
	})
	return answer, err
}

// isRefused sees that an answer is this refusal, and says this.
func isRefused(t *testing.T, err error, code refusal.Code, status int, says string) {
	t.Helper()
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		t.Fatalf("got %v, want a refusal", err)
	}
	refused, ok := refusal.FromStatus(err)
	if !ok || refused.Code != code || int(answer.Status().Code) != status || !strings.Contains(refused.Message, says) {
		t.Errorf("got %d %v, want %d %s: %s", answer.Status().Code, err, status, code, says)
	}
}

// labels has the owner set how long tokens of the target live.
func (b *brought) labels(env string) {
	b.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"env":%q}}}`, env)
	must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Patch(b.t.Context(), b.name, types.MergePatchType, patch, metav1.PatchOptions{}))(b.t)
}

func TestTokensOfABroughtTarget(t *testing.T) {
	requireNode(t)
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	b.register(nil)
	inState(t, b.first(), registryv1alpha1.TargetReady)

	t.Run("one works there, as what pods run as and nothing more", func(t *testing.T) { tokenWorks(t, b) })
	for env, want := range map[string]struct{ life, most time.Duration }{
		"dev": {30 * time.Minute, time.Hour}, "stage": {15 * time.Minute, 30 * time.Minute}, "prod": {10 * time.Minute, 15 * time.Minute},
	} {
		t.Run("it lives as long as the label says: "+env, func(t *testing.T) { tokenLives(t, b, env, want.life, want.most) })
	}
	t.Run("sealed, only its recipient opens it, and no log has it", func(t *testing.T) { tokenIsSealed(t, b) })
	t.Run("a dry run mints nothing", func(t *testing.T) { tokenIsntMintedDry(t, b) })
	t.Run("who may ask and isn't covered by the owner gets none", func(t *testing.T) {
		_, eve := userOf(t, "eve", "team-b")
		b.mayOwn(clientset(t, hub.Hub.Admin), rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "eve"})
		eventually(t, "RBAC lets eve ask", func(ctx context.Context) error {
			_, err := eve.RegistryV1alpha1().ClusterTargets(b.name).List(ctx, metav1.ListOptions{})
			return err
		})
		_, err := b.asksForAToken(eve, cellcastv1alpha1.TargetTokenSpec{})
		isRefused(t, err, refusal.NotOwner, http.StatusForbidden, "target "+b.name+"/"+b.name+` is owned by "user:dana", which doesn't cover user "eve"`)
	})
	t.Run("who may not ask is refused by RBAC", func(t *testing.T) {
		_, mallory := userOf(t, "mallory")
		_, err := b.asksForAToken(mallory, cellcastv1alpha1.TargetTokenSpec{})
		if _, ours := refusal.FromStatus(err); ours || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "clustertargets/token"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestATargetThatIsntReadyGivesNoToken(t *testing.T) {
	require(t)
	b := bring(t)
	b.register(nil) // of a Secret that isn't there, nor a Role for it
	inState(t, b.first(), registryv1alpha1.TargetCredentialUnavailable)
	var err error
	eventually(t, "the hub has seen the state", func(context.Context) error {
		if _, err = b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{}); err == nil {
			return errors.New("it got a token")
		} else if !strings.Contains(err.Error(), string(registryv1alpha1.TargetCredentialUnavailable)) {
			return fmt.Errorf("the refusal doesn't say the state: %w", err)
		}
		return nil
	})
	isRefused(t, err, refusal.TargetNotReady, http.StatusServiceUnavailable,
		fmt.Sprintf("target %[1]s/%[1]s can't be used now: it is CredentialUnavailable: Credential: Secret %[1]s/%[1]s-kubeconfig may not be read by the hub.", b.name))
}

func tokenWorks(t *testing.T, b *brought) {
	answer, err := b.asksOnceReady(cellcastv1alpha1.TargetTokenSpec{})
	if err != nil {
		t.Fatal(err)
	}
	minted := answer.Credential
	want := cellcastv1alpha1.TargetReference{
		Namespace: b.name, Name: b.name, Address: registryv1alpha1.TargetAddress(b.row().UID), Endpoint: acme().URL, CABundle: acme().CABundle,
	}
	if diff := cmp.Diff(want, answer.Target); diff != "" {
		t.Errorf("the target (-want +got):\n%s", diff)
	}
	if minted == nil || minted.Namespace != b.name || minted.ServiceAccountName != "default" || minted.SealedToken != "" {
		t.Fatalf("the credential is for %+v", answer.Target)
	}
	there := must(kubernetes.NewForConfig(&rest.Config{
		Host: answer.Target.Endpoint, BearerToken: minted.Token, TLSClientConfig: rest.TLSClientConfig{CAData: answer.Target.CABundle},
	}))(t)
	who := must(there.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	if got := who.Status.UserInfo.Username; got != "system:serviceaccount:"+b.name+":default" {
		t.Errorf("it's %s there", got)
	}
	if _, err := there.CoreV1().Pods(b.name).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the ServiceAccount has no right, and with its token: %v", err)
	}
	record := mintRecord(t, answer.RequestID)
	sum := sha256.Sum256([]byte(minted.Token))
	wantRecord := audit.Record{
		Event: audit.EventMint, Outcome: audit.OutcomeAllowed, RequestID: answer.RequestID, User: "dana",
		Kind: "ClusterTarget", Name: b.name + "/" + b.name, Target: answer.Target.Address,
		Namespace: b.name, ServiceAccount: "default", TTLSeconds: 600, TokenSHA256: hex.EncodeToString(sum[:]),
	}
	got := audit.Record{
		Event: record.Event, Outcome: record.Outcome, RequestID: record.RequestID, User: record.User,
		Kind: record.Kind, Name: record.Name, Target: record.Target,
		Namespace: record.Namespace, ServiceAccount: record.ServiceAccount, TTLSeconds: record.TTLSeconds, TokenSHA256: record.TokenSHA256,
	}
	if diff := cmp.Diff(wantRecord, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if record.JTI == "" || !record.ExpiresAt.Equal(minted.ExpirationTimestamp.Time) {
		t.Errorf("the record has the jti %q and says that it ends at %s, not %s", record.JTI, record.ExpiresAt, minted.ExpirationTimestamp)
	}
	for _, part := range strings.Split(minted.Token, ".")[1:] {
		if strings.Contains(string(must(os.ReadFile(hub.Hub.Server.LogFile()))(t)), part) {
			t.Error("a part of the token is in the hub's log")
		}
	}
}

// mintRecord is the one record in the hub's trail of this request.
func mintRecord(t *testing.T, requestID string) audit.Record {
	t.Helper()
	found := slices.DeleteFunc(trail(t), func(r audit.Record) bool { return r.RequestID != requestID })
	if len(found) != 1 {
		t.Fatalf("there are %d records of the request: %+v", len(found), found)
	}
	return found[0]
}

// trail is the hub's audit trail.
func trail(t *testing.T) (records []audit.Record) {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile(hub.Hub.Server.LogFile()))(t))) {
		var record audit.Record
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &record) == nil {
			records = append(records, record)
		}
	}
	return records
}

func tokenLives(t *testing.T, b *brought, env string, life, most time.Duration) {
	b.labels(env)
	eventually(t, "the hub has seen the label", func(context.Context) error {
		answer, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(answer.Credential.ExpirationTimestamp.Time); left < life-time.Minute || left > life {
			return fmt.Errorf("it lives %s, want %s", left, life)
		}
		return nil
	})
	answer, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{TTL: most.String()})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(answer.Credential.ExpirationTimestamp.Time); left < most-time.Minute || left > most {
		t.Errorf("one for %s lives %s", most, left)
	}
	_, err = b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{TTL: (most + time.Second).String()})
	isRefused(t, err, refusal.InvalidRequest, http.StatusBadRequest,
		fmt.Sprintf("%s is longer than %s, the most that the hub and the label env=%q of target %[4]s/%[4]s allow; ask for less or leave ttl out", most+time.Second, most, env, b.name))
}

func tokenIsSealed(t *testing.T, b *brought) {
	key := must(seal.NewKey())(t)
	answer, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{Recipient: key.Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Credential == nil || answer.Credential.Token != "" {
		t.Fatal("it isn't sealed")
	}
	token := must(key.Open(answer.Credential.SealedToken))(t)
	if _, err := must(seal.NewKey())(t).Open(answer.Credential.SealedToken); err == nil {
		t.Error("another key opens it")
	}
	record := mintRecord(t, answer.RequestID)
	if sum := sha256.Sum256([]byte(token)); !record.Sealed || record.TokenSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the record says sealed: %t, and another digest", record.Sealed)
	}
	for place, content := range traceLogs(t) {
		if where := traceIn(content, traceParts(token)); where {
			t.Errorf("the token is in %s", place)
		}
	}
}

func tokenIsntMintedDry(t *testing.T, b *brought) {
	before := tokensMintedAt(t, b.name)
	answer, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{}, metav1.DryRunAll)
	if err != nil || answer.Credential != nil {
		t.Errorf("got a credential: %t, %v", answer.Credential != nil, err)
	}
	if record := mintRecord(t, answer.RequestID); !record.DryRun || record.TokenSHA256 != "" {
		t.Errorf("the record is %+v", record)
	}
	// One that is minted is in the log, so that none of the dry run would be missed.
	if _, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the brought cluster has recorded a token", func(context.Context) error {
		if tokensMintedAt(t, b.name) == before {
			return errors.New("not yet")
		}
		return nil
	})
	if got := tokensMintedAt(t, b.name) - before; got != 1 {
		t.Errorf("%d tokens were minted, want the one that was asked for", got)
	}
}

// tokensMintedAt counts, by the audit log of the brought cluster, the tokens that
// the hub's account had issued in a namespace.
func tokensMintedAt(t *testing.T, namespace string) (n int) {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile(acme().AuditLog))(t))) {
		if strings.Contains(line, `"username":"system:serviceaccount:`+namespace+":"+account+`"`) &&
			strings.Contains(line, `"subresource":"token"`) && strings.Contains(line, `"stage":"ResponseComplete"`) {
			n++
		}
	}
	return n
}
