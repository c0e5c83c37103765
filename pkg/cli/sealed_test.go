package cli_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

// inTheClear is what is left of a credential where something took the key out of
// the question.
func inTheClear(c *cellcastv1alpha1.Credential) { c.Token, c.SealedToken = "minted.SECRET.1", "" }

// toAnotherKey is what is left of it where something put in a key of its own.
func toAnotherKey(c *cellcastv1alpha1.Credential) {
	key, err := seal.NewKey()
	if err != nil {
		panic(err)
	}
	recipient, refused := seal.ParseRecipient("spec.recipient", *key.Recipient())
	if refused != nil {
		panic(refused)
	}
	if c.SealedToken, err = recipient.Seal("minted.SECRET.1"); err != nil {
		panic(err)
	}
}

// Somebody else may have the token, so that it's ended whoever asked for it.
func TestACredentialThatIsNotSealedToTheRunIsEnded(t *testing.T) {
	const clear = "Error: the hub answered with a token that isn't sealed, though it was given a key: something on the way took the key out, and may have read the token; nothing was kept of it, and "
	const tell = ". Tell the platform team\n"
	for name, test := range map[string]struct {
		way    func(*cellcastv1alpha1.Credential)
		change func(*credentialhub)
		err    string
		asked  []string
	}{
		"where it's in the clear": {inTheClear, func(*credentialhub) {}, clear + "the credential was revoked" + tell, credentialhubRevoked},
		"where it's sealed to another key": {toAnotherKey, func(*credentialhub) {},
			"Error: the sealed token isn't sealed to this key: something on the way to the hub may have put in its own; nothing was kept of it, and the credential was revoked" + tell, credentialhubRevoked},
		"but for one that isn't revocable": {inTheClear, func(h *credentialhub) { h.revocable = 0 },
			clear + "the credential can't be revoked, and is good until 2026-01-02T03:14:05Z" + tell, nil},
		"but where the hub refuses": {inTheClear, func(h *credentialhub) { h.refuses["cells/eu-1/revocation"] = refusal.NoPolicy },
			clear + "the credential wasn't revoked (NoPolicy: the fake says so), and is good until 2026-01-02T03:09:05Z" + tell, nil},
		"but where the hub doesn't find it": {inTheClear, func(h *credentialhub) { h.alive = false },
			clear + "the credential wasn't revoked (the hub found no such credential of yours: it has ended already, or you aren't the caller any more whom it was issued to), and is good until 2026-01-02T03:09:05Z" + tell, credentialhubRevoked},
		"but where nothing can be named by what came": {func(c *cellcastv1alpha1.Credential) { inTheClear(c); c.Namespace = "../payments" }, func(*credentialhub) {},
			clear + "the credential wasn't revoked (in the hub's answer, the namespace of the credential is wrong), and is good until 2026-01-02T03:09:05Z" + tell, nil},
	} {
		for _, args := range [][]string{
			{"exec", "--workload", "payments/api", "--", "echo", "it ran"},
			{"place", "payments/api", "--write-kubeconfig", "cell.kubeconfig"},
			{"credential", "--cell", "eu-1", "--workload", "payments/api"},
		} {
			t.Run(name+" "+args[0], func(t *testing.T) {
				j := newJob(t)
				j.hub.with(func(h *credentialhub) { h.way = test.way; test.change(h) })
				j.env = append(j.env, "KUBERNETES_EXEC_INFO="+execInfo)
				got := j.run(args...)
				if diff := cmp.Diff(answerOf{1, "", test.err}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				j.clean(test.asked)
			})
		}
	}
}
