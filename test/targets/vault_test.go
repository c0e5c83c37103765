package targets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/test/world"
)

// A kubeconfig in Vault serves as one in a Secret does: the target is Ready by it,
// a new version is taken, and without Vault the target says so and comes back.
func TestAKubeconfigInVault(t *testing.T) {
	requireNode(t)
	vaultKnowsTheHub(t)
	b := bring(t)
	path := "users/dana/" + b.name
	inVault := func(token string) {
		vault.Put(path, map[string]any{registryv1alpha1.SecretKeyKubeconfig: string(b.kubeconfig(token))})
	}
	inVault(b.token)
	row := b.register(fromVault(path))
	file := filepath.Join(tokenDir, string(row.UID))
	inState(t, b.first(), registryv1alpha1.TargetReady)
	if logins := len(vault.Logins()); logins != 1 {
		t.Errorf("the hub logged in to Vault %d times", logins)
	}
	if answer, err := b.asksOnceReady(cellcastv1alpha1.TargetTokenSpec{}); err != nil || answer.Credential.Token == "" {
		t.Errorf("a token of the target: %v", err)
	}
	vaultReadsOnRecord(t, row, path)

	token := must(acme().Token(t.Context(), b.name, account, 2*time.Hour))(t)
	inVault(token)
	b.awaitsRun(registryv1alpha1.ProbeCredentialChanged, registryv1alpha1.TargetReady)
	if kept := must(os.ReadFile(file))(t); string(kept) != token {
		t.Error("the token file has another token than Vault")
	}

	other := inASecret(b)
	vault.Seal(true)
	t.Cleanup(func() { vault.Seal(false) })
	row = b.awaits(registryv1alpha1.TargetCredentialUnavailable)
	if want := "Credential: Vault is sealed, or doesn't answer. The hub tries again; where that lasts, tell its operator."; row.Status.Failing != want {
		t.Errorf("it says %q, want %q", row.Status.Failing, want)
	}
	if !meta.IsStatusConditionFalse(row.Status.Conditions, registryv1alpha1.ConditionCredentialAvailable) {
		t.Errorf("the conditions are %+v", row.Status.Conditions)
	}
	vault.Seal(false)
	b.awaitsRun(registryv1alpha1.ProbeRecovered, registryv1alpha1.TargetReady)
	after := must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(t.Context(), other.Name, metav1.GetOptions{}))(t)
	if diff := cmp.Diff(other.Status.Conditions, after.Status.Conditions); diff != "" {
		t.Errorf("what became meanwhile of a target whose kubeconfig is in a Secret (-before +after):\n%s", diff)
	}

	vault.Delete(path)
	row = b.awaits(registryv1alpha1.TargetCredentialUnavailable)
	if want := "Credential: Vault has no secret at " + path + ", or its newest version was deleted."; !strings.HasPrefix(row.Status.Failing, want) {
		t.Errorf("it says %q, want %q", row.Status.Failing, want)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the token file of a secret that was taken back: %v", err)
	}
}

// Nobody has the hub read what is another owner's in Vault.
func TestAnothersPathInVault(t *testing.T) {
	b := bring(t)
	for _, path := range []string{"users/eve/prod", "users/danae/prod", "groups/team-b/prod", "users/dana/../eve/prod", "users/dana/%2e%2e/eve/prod", "users/dana//prod"} {
		row := b.ownedBy("vault", registryv1alpha1.TargetOwner{})
		row.Spec.CredentialRef = registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: path}}
		_, err := b.hub.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), row, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil && !strings.Contains(err.Error(), "spec.credentialRef.vaultRef.path") {
			t.Errorf("%s: the refusal doesn't name the field: %v", path, err)
		}
	}
	for _, request := range vault.Seen() {
		if strings.Contains(request.URI, "eve") || strings.Contains(request.URI, "team-b") {
			t.Errorf("Vault was asked for %s", request.URI)
		}
	}
}

// inASecret is a second target of the namespace, Ready by a kubeconfig in a Secret.
func inASecret(b *brought) (row *registryv1alpha1.ClusterTarget) {
	b.t.Helper()
	b.keep(b.kubeconfig(b.token))
	rows := b.hub.RegistryV1alpha1().ClusterTargets(b.name)
	must(rows.Create(b.t.Context(), b.ownedBy("in-a-secret", registryv1alpha1.TargetOwner{}), metav1.CreateOptions{}))(b.t)
	b.t.Cleanup(func() { _ = rows.Delete(context.Background(), "in-a-secret", metav1.DeleteOptions{}) })
	eventually(b.t, "the second target is Ready", func(ctx context.Context) (err error) {
		if row, err = rows.Get(ctx, "in-a-secret", metav1.GetOptions{}); err != nil || row.Status.State == registryv1alpha1.TargetReady {
			return err
		}
		return fmt.Errorf("it's %s: %s", row.Status.State, row.Status.Failing)
	})
	return row
}

func fromVault(path string) func(*registryv1alpha1.ClusterTargetSpec) {
	return func(spec *registryv1alpha1.ClusterTargetSpec) {
		spec.CredentialRef = registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: path}}
	}
}

// vaultKnowsTheHub has Vault's Kubernetes auth ask the hub's API server who shows
// a token, as a real one does.
func vaultKnowsTheHub(t *testing.T) {
	t.Helper()
	admin := clientset(t, hub.Hub.Admin)
	vault.Believe(func(ctx context.Context, jwt string) error {
		const audience, user = "vault", "system:serviceaccount:" + world.Namespace + ":" + world.HubServiceAccount
		review, err := admin.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: jwt, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if s := review.Status; !s.Authenticated || s.User.Username != user || !slices.Equal(s.Audiences, []string{audience}) {
			return fmt.Errorf("the token is of %q for %q: %s", s.User.Username, s.Audiences, s.Error)
		}
		return nil
	})
}

// vaultReadsOnRecord fails the test where the trail hasn't a read of the path by
// nobody else than the hub itself.
func vaultReadsOnRecord(t *testing.T, row *registryv1alpha1.ClusterTarget, path string) {
	t.Helper()
	for _, record := range trail(t) {
		if record.Event != audit.EventCredentialRead || record.Target != registryv1alpha1.TargetAddress(row.UID) {
			continue
		}
		if record.Kind != "Vault" || record.Name != path || record.User != "" || record.Outcome != audit.OutcomeAllowed {
			t.Errorf("a read of the credential is on record as %+v", record)
		}
		return
	}
	t.Error("no read of the credential is on record")
}
