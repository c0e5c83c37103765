package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
)

const (
	eventsOfIt = onTeam + "get events --field-selector involvedObject.name=cellcast-canary-r-1"
	policies   = onTeam + "get networkpolicies"
	accounts   = onTeam + "get serviceaccounts,resourcequotas,limitranges"
	mayConnect = "The canary pod started, and no post of it arrived. Pods of namespace team must be able to connect to https://hub.example.com: " +
		"check its NetworkPolicies, the firewall on the way, the cluster's DNS, and that the certificate there is signed by a CA that pods are given."
	checkThat = " Check in namespace team that ServiceAccount turns exists, that the quota has room for a pod, and what admission policies ask of one."
	itsTrail  = "If it's this hub, its operator finds why in the audit trail, under the name cellcast-canary-r-1."
	gaveUp    = "\ncanary: the hub accepted none of 9 attempts: context deadline exceeded\n"
)

// fares sets what becomes of the pod, which posts nothing that is received.
func fares(status corev1.PodStatus) func(*trial) {
	return func(tr *trial) {
		tr.record.receiptAfter = -1
		tr.target.kubelet = func(time.Duration) corev1.PodStatus { return status }
	}
}

func TestCanaryFails(t *testing.T) {
	forbidden := answered(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "cellcast-canary-r-1",
		errors.New(`error looking up service account team/turns: serviceaccount "turns" not found`)))
	tests := map[string]struct {
		when    func(*trial)
		message string
		remedy  string
		took    time.Duration
		unmade  bool // that no pod was made
	}{
		"the hub has no image": {
			when:    func(tr *trial) { tr.spec.CanaryImage = "" },
			message: "The hub has no --canary-image, so no target becomes Ready: ask its operator.", unmade: true},
		"the hub has no external URL": {
			when:    func(tr *trial) { tr.spec.Ingest.URL = "" },
			message: "The hub has no --external-url that pods could post to: ask its operator.", unmade: true},
		"its name can't be recorded": {
			when:    func(tr *trial) { tr.record.fails["CanaryNamed"] = errors.New("conflict") },
			message: "The hub couldn't record how far the probe has come, so it went no further here. Probe again. " + theCause, unmade: true},
		"its UID can't be recorded": {
			when:    func(tr *trial) { tr.record.fails["CanaryCreated"] = errors.New("conflict") },
			message: "The hub couldn't record how far the probe has come, so it went no further here. Probe again. " + theCause},
		"its receipt can't be watched for": {
			when:    func(tr *trial) { tr.record.fails["AwaitReceipt"] = errors.New("no informer") },
			message: "The hub couldn't record how far the probe has come, so it went no further here. Probe again. " + theCause},
		"its ServiceAccount isn't there": {
			when: func(tr *trial) { tr.target.admit = forbidden }, unmade: true,
			message: `The target refused the canary pod: pods "cellcast-canary-r-1" is forbidden: error looking up service account team/turns: serviceaccount "turns" not found.` + checkThat,
			remedy:  accounts},
		"admission has something against it": {
			when: func(tr *trial) {
				tr.target.admit = serverError(422, "denied by\x1b[2J the\nwebhook"+strings.Repeat("!", 300))
			}, unmade: true,
			message: "The target refused the canary pod: denied by [2J the webhook" + strings.Repeat("!", 228) + "…." + checkThat,
			remedy:  accounts},
		"the API answers its creation with an error": {
			when: ends("CreatePod", serverError(500, "s3cret")), unmade: true,
			message: "The target's API answered that it can't serve now, when asked to create the canary pod. Probe again when it does.", remedy: ready},

		"no node takes it": {
			when: fares(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}}),
			message: "The canary pod never started within 1m30s; the target says Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. Its events say more.",
			remedy:  eventsOfIt, took: 90 * time.Second},
		"no scheduler looks at it": {
			when:    fares(corev1.PodStatus{Phase: corev1.PodPending}),
			message: "The canary pod never started within 1m30s; the target says nothing of why: see whether it has a node that takes pods. Its events say more.",
			remedy:  eventsOfIt, took: 90 * time.Second},
		"its image can't be pulled": {
			when: fares(heldBack("ImagePullBackOff", "Back-off pulling image: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln")),
			message: "The canary pod never started within 1m30s; the target says ImagePullBackOff: Back-off pulling image: [token]. " +
				"Its nodes must be able to pull registry.example.com/canary@sha256:0: name a pull secret in spec.imagePullSecrets (" + editRow + "), " +
				"or ask the hub's operator for an image that they can reach.",
			remedy: eventsOfIt, took: 90 * time.Second},
		"its image can never be pulled": {
			when: fares(heldBack("ErrImageNeverPull", "no such image")),
			message: "The canary pod never started; the target says ErrImageNeverPull: no such image. " +
				"Its nodes must be able to pull registry.example.com/canary@sha256:0: name a pull secret in spec.imagePullSecrets (" + editRow + "), " +
				"or ask the hub's operator for an image that they can reach.",
			remedy: eventsOfIt, took: 2 * time.Second},
		"its container can't be made": {
			when:    fares(heldBack("CreateContainerError", "no space left on device")),
			message: "The canary pod never started within 1m30s; the target says CreateContainerError: no space left on device. Its events say more.",
			remedy:  eventsOfIt, took: 90 * time.Second},
		"its container can't be run": {
			when:    fares(exited(128, "StartError", "exec format error")),
			message: "The canary pod never started; the target says StartError: exec format error. Its events say more.",
			remedy:  eventsOfIt, took: 2 * time.Second},
		"the kubelet refuses it": {
			when:    fares(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected"}),
			message: "The canary pod never started; the target says OutOfcpu: Pod was rejected. Its events say more.",
			remedy:  eventsOfIt, took: 2 * time.Second},

		"it runs and doesn't get through": {
			when: fares(started()), message: mayConnect, remedy: policies, took: 90 * time.Second},
		"it gives up without an answer": {
			when:    fares(exited(1, "Error", "attempt 8: no answer in time\nattempt 9: no connection: dial tcp: lookup hub.example.com: no such host"+gaveUp)),
			message: mayConnect + " The target says of it: attempt 9: no connection: dial tcp: lookup hub.example.com: no such host.", remedy: policies, took: 2 * time.Second},
		"it's killed": {
			when:    fares(exited(137, "OOMKilled", "")),
			message: mayConnect + " The target says of it: OOMKilled.", remedy: policies, took: 2 * time.Second},
		"its token isn't believed": {
			when: fares(exited(1, "Error", "attempt 9: the hub answered 401 Unauthorized"+gaveUp)),
			message: "The canary pod started, and what answers at https://hub.example.com refused its post (401): " +
				"the hub didn't believe the token that the target gave it, or it isn't this hub. " + itsTrail, took: 2 * time.Second},
		"it posts to something else": {
			when: fares(exited(1, "Error", "attempt 9: the hub answered 404 Not Found"+gaveUp)),
			message: "The canary pod started, and what answers at https://hub.example.com refused its post (404): " +
				"that isn't the hub's external listener, so ask the hub's operator, whose --external-url it is, or name another in spec.ingestURL.",
			remedy: editRow, took: 2 * time.Second},
		"it posts to something else, to which the row sends it": {
			when: func(tr *trial) {
				fares(exited(1, "Error", "attempt 9: the hub answered 405 Method Not Allowed"+gaveUp))(tr)
				tr.spec.Target.IngestURL = "https://way.example.com"
			},
			message: "The canary pod started, and what answers at https://way.example.com refused its post (405): " +
				"that isn't the hub's external listener, so correct spec.ingestURL.",
			remedy: editRow, took: 2 * time.Second},
		"its post is refused in another way": {
			when:    fares(exited(1, "Error", "attempt 9: the hub answered 502 Bad Gateway"+gaveUp)),
			message: "The canary pod started, and what answers at https://hub.example.com refused its post (502). " + itsTrail, took: 2 * time.Second},
		"the hub has too much to do": {
			when: fares(exited(1, "Error", "attempt 9: the hub answered 503 Service Unavailable"+gaveUp)),
			message: "The canary pod started, and what answers at https://hub.example.com refused its post (503): " +
				"it has too much to do now, or can't read the target's keys. Probe again. " + itsTrail, took: 2 * time.Second},
		"its post is taken by something else": {
			when: fares(exited(0, "Completed", "")),
			message: "The canary's post was taken by something at https://hub.example.com that isn't this hub, for the hub has no receipt of it. " +
				"See what stands before the hub there, or ask the hub's operator, whose --external-url it is, or name another in spec.ingestURL.",
			remedy: editRow, took: 12 * time.Second},
		"its post is taken by something else, to which the row sends it": {
			when: func(tr *trial) {
				fares(exited(0, "Completed", ""))(tr)
				tr.spec.Target.IngestURL = "https://way.example.com"
			},
			message: "The canary's post was taken by something at https://way.example.com that isn't this hub, for the hub has no receipt of it. " +
				"See what stands before the hub there, or correct spec.ingestURL.",
			remedy: editRow, took: 12 * time.Second},
		"somebody deletes it": {
			when: func(tr *trial) {
				fares(started())(tr)
				tr.target.fails["GetPod"] = notFound("cellcast-canary-r-1")
			},
			message: "Somebody deleted the canary pod before it had reached the hub. See what deletes pods in namespace team, and probe again.",
			remedy:  eventsOfIt, took: 2 * time.Second},
		"it can't be looked at": {
			when: func(tr *trial) {
				fares(started())(tr)
				tr.target.fails["GetPod"] = serverError(500, "s3cret")
			},
			message: "The target's API answered that it can't serve now, when asked to get the canary pod. Probe again when it does.", remedy: ready, took: 90 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tc.when(tr)
				began := time.Now()
				r := tr.run()
				took := time.Since(began).Truncate(time.Second) // the reviews take less
				c := checkOf(t, r, registryv1alpha1.CheckCanary)
				if c.Result != registryv1alpha1.CheckFailed || r.State != registryv1alpha1.TargetFailed {
					t.Errorf("%s, state %s", c.Result, r.State)
				}
				if c.Message != tc.message || c.Remedy != tc.remedy {
					t.Errorf("message\n%s\nremedy %s, want\n%s\nremedy %s", c.Message, c.Remedy, tc.message, tc.remedy)
				}
				checkText(t, r, c)
				if took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
				if len(tr.target.pods) > 0 || (tr.target.made == nil) != tc.unmade {
					t.Errorf("left the pods %v; made %v", slices.Collect(maps.Keys(tr.target.pods)), tr.target.made != nil)
				}
				got := results(r)
				delete(got, registryv1alpha1.CheckCanary)
				for item, result := range got {
					if result != registryv1alpha1.CheckPassed {
						t.Errorf("%s: %s", item, result)
					}
				}
			})
		})
	}
}

// A receipt that comes while the pod looks lost counts.
func TestReceiptWins(t *testing.T) {
	for name, status := range map[string]corev1.PodStatus{
		"over a pod that has ended well":            exited(0, "Completed", ""),
		"over an image that couldn't be pulled yet": heldBack("ErrImagePull", "try again"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				fares(status)(tr)
				tr.record.receiptAfter = 9 * time.Second
				if r := tr.run(); r.State != registryv1alpha1.TargetReady {
					t.Errorf("state %s, failing %s", r.State, r.Failing)
				}
			})
		})
	}
}

// A run that was cut has a canary, which takes a moment to end.
func TestTheNextCanaryOfARunWaitsForTheFirstToEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		ends time.Duration
		want registryv1alpha1.TargetState
	}{
		"one that ends":       {20 * time.Second, registryv1alpha1.TargetReady},
		"one that never does": {time.Hour, registryv1alpha1.TargetFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tr.target.ends = time.Now().Add(tc.ends)
				r := tr.run()
				if r.State != tc.want {
					t.Errorf("state %s, failing %s", r.State, r.Failing)
				}
				if c := checkOf(t, r, registryv1alpha1.CheckCanary); tc.want != registryv1alpha1.TargetReady && !strings.Contains(c.Message, "already exists") {
					t.Errorf("message %s", c.Message)
				}
			})
		})
	}
}

// Whoever can make pods there can make one of the canary's name.
func TestPodThatTakesTheCanarysName(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		fares(started())(tr)
		tr.target.kubelet = func(time.Duration) corev1.PodStatus {
			tr.target.pods["cellcast-canary-r-1"].UID = "another"
			return exited(0, "Completed", "")
		}
		r := tr.run()
		want := "Somebody deleted the canary pod before it had reached the hub. See what deletes pods in namespace team, and probe again."
		if c := checkOf(t, r, registryv1alpha1.CheckCanary); c.Message != want {
			t.Errorf("message %s", c.Message)
		}
		if len(tr.target.pods) != 1 {
			t.Error("the other pod was deleted")
		}
	})
}

func TestCanaryIsDeletedInEveryOutcome(t *testing.T) {
	ending := func(after time.Duration) func(*trial) {
		return func(tr *trial) {
			fares(started())(tr)
			ctx, cancel := context.WithTimeout(tr.ctx, after)
			tr.ctx = ctx
			context.AfterFunc(ctx, cancel)
		}
	}
	tests := map[string]struct {
		when func(*trial)
		last []string
	}{
		"it came through": {func(*trial) {}, []string{
			"received", `delete cellcast-canary-r-1 "pod-uid"`, "deleted, with a context that is over: false"}},
		"it didn't": {fares(started()), []string{
			"created pod-uid", `delete cellcast-canary-r-1 "pod-uid"`, "deleted, with a context that is over: false"}},
		"the run is ended while it waits": {ending(20 * time.Second), []string{
			"created pod-uid", `delete cellcast-canary-r-1 "pod-uid"`, "deleted, with a context that is over: false"}},
		"its UID can't be recorded": {func(tr *trial) { tr.record.fails["CanaryCreated"] = errors.New("conflict") }, []string{
			"created pod-uid", `delete cellcast-canary-r-1 "pod-uid"`, "deleted, with a context that is over: false"}},
		"nobody knows whether it was made": {ends("CreatePod", fail(failure.Unreachable, errors.New("reset"))), []string{
			"create cellcast-canary-r-1", `delete cellcast-canary-r-1 ""`, "deleted, with a context that is over: false"}},
		"it was refused": {func(tr *trial) { tr.target.admit = serverError(422, "no") }, []string{
			"create cellcast-canary-r-1", `delete cellcast-canary-r-1 ""`, "deleted, with a context that is over: false"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tc.when(tr)
				tr.run()
				if len(tr.target.pods) > 0 {
					t.Errorf("pods are left: %v", tr.target.pods)
				}
				diary := *tr.target.diary
				if diff := cmp.Diff(tc.last, diary[max(0, len(diary)-3):]); diff != "" {
					t.Errorf("last steps (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestCanaryThatCannotBeDeleted(t *testing.T) {
	const left = " The canary pod cellcast-canary-r-1 couldn't be deleted: delete it, or the hub does when it can."
	tests := map[string]struct {
		err     error
		when    func(*trial)
		result  registryv1alpha1.CheckResult
		message string
		tries   int
		state   registryv1alpha1.TargetState
	}{
		"is a warning where all else is well": {serverError(500, ""), func(*trial) {}, registryv1alpha1.CheckWarning,
			"A canary pod started, proved who it is, and reached the hub." + left, 3, registryv1alpha1.TargetReady},
		"isn't tried again where that can't help": {serverError(403, ""), func(*trial) {}, registryv1alpha1.CheckWarning,
			"A canary pod started, proved who it is, and reached the hub." + left, 1, registryv1alpha1.TargetReady},
		"is told beside what went wrong": {serverError(500, ""), fares(started()), registryv1alpha1.CheckFailed, mayConnect + left, 3, registryv1alpha1.TargetFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tc.when(tr)
				tr.target.fails["DeletePod"] = tc.err
				r := tr.run()
				c := checkOf(t, r, registryv1alpha1.CheckCanary)
				if c.Result != tc.result || c.Message != tc.message || c.Remedy == "" || r.State != tc.state {
					t.Errorf("%s: %s\nremedy %s, state %s", c.Result, c.Message, c.Remedy, r.State)
				}
				diary := fmt.Sprint(*tr.target.diary)
				if got := strings.Count(diary, "delete "); got != tc.tries || strings.Contains(diary, "deleted") {
					t.Errorf("%d tries in %s, want %d", got, diary, tc.tries)
				}
			})
		})
	}
}

func TestDeleteCanary(t *testing.T) {
	const name = "cellcast-canary-r-1"
	tests := map[string]struct {
		uid  string
		when func(*target)
		left int
		err  bool
	}{
		"deletes the pod of the UID":              {"pod-uid", func(*target) {}, 0, false},
		"deletes by name where no UID is known":   {"", func(*target) {}, 0, false},
		"is content where there is none":          {"pod-uid", func(w *target) { clear(w.pods) }, 0, false},
		"leaves another pod of the name as it is": {"old-uid", func(*target) {}, 1, false},
		"says so where it couldn't":               {"pod-uid", func(w *target) { w.fails["DeletePod"] = serverError(403, "") }, 1, true},
		"takes no other refusal for a success":    {"pod-uid", func(w *target) { w.fails["DeletePod"] = serverError(422, "") }, 1, true},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			w := newTarget(t, registryv1alpha1.ClusterTargetSpec{})
			w.pods[name] = &corev1.Pod{}
			w.pods[name].UID = "pod-uid"
			tc.when(w)
			err := DeleteCanary(t.Context(), w, "team", name, types.UID(tc.uid))
			if (err != nil) != tc.err || len(w.pods) != tc.left {
				t.Errorf("%d pods are left, %v", len(w.pods), err)
			}
		})
	}
}

func TestCanaryPod(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		tr.spec.Target.IngestURL = "https://way.example.com/$(CELLCAST_INGEST_CA)"
		tr.run()
		little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
		want := corev1.PodSpec{
			ServiceAccountName: "turns", AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: ptr.To[int64](120), TerminationGracePeriodSeconds: ptr.To[int64](1),
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), FSGroup: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "canary", Image: "registry.example.com/canary@sha256:0",
				Env: []corev1.EnvVar{
					{Name: "CELLCAST_INGEST_URL", Value: "https://way.example.com/$$(CELLCAST_INGEST_CA)"},
					{Name: "CELLCAST_INGEST_CA", Value: "PEM"},
					{Name: "CELLCAST_POD", Value: "cellcast-canary-r-1"},
					{Name: "CELLCAST_RUN", Value: "r-1"},
					{Name: "CELLCAST_DEADLINE", Value: "1m0s"},
				},
				Resources:                corev1.ResourceRequirements{Requests: little, Limits: little},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/cellcast.io", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience: "https://hub.example.com", ExpirationSeconds: ptr.To[int64](600), Path: "token"}}}}}}},
		}
		if diff := cmp.Diff(want, tr.target.made.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		wantMeta := metav1.ObjectMeta{Namespace: "team", Name: "cellcast-canary-r-1",
			Labels: map[string]string{"app.kubernetes.io/name": "cellcast-canary", "cellcast.io/target": "u-1"}}
		got := metav1.ObjectMeta{Namespace: tr.target.made.Namespace, Name: tr.target.made.Name, Labels: tr.target.made.Labels}
		if diff := cmp.Diff(wantMeta, got); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	})
}
