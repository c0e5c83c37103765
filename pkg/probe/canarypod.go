package probe

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/probe/contract"
)

const (
	// tokenDir is where the canary finds its token, in the file named token.
	tokenDir = "/var/run/secrets/cellcast.io" //nolint:gosec // a path, no credential
	// tokenSeconds is the least life that Kubernetes issues a token for.
	tokenSeconds = 600
	// canaryUser is nobody's: it owns no file of the image.
	canaryUser = 65532
	// LabelTarget is, on each pod of a target, the UID of the target's row.
	LabelTarget = "cellcast.io/target"
)

// ingestURL is where pods of the target find the hub.
func (p *probe) ingestURL() string {
	if p.spec.Target.IngestURL != "" {
		return p.spec.Target.IngestURL
	}
	return p.spec.Ingest.URL
}

// pod is the canary. It asks for no more than the Pod Security level "restricted"
// lets every pod have, ends by itself, and is given no credential but a token that
// is good for the hub alone.
func (p *probe) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.spec.Target.Namespace, Name: name,
			Labels: map[string]string{"app.kubernetes.io/name": "cellcast-canary", LabelTarget: string(p.spec.UID)},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName:            contract.ServiceAccountName(p.spec.Target),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr.To[int64](120),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](canaryUser), RunAsGroup: ptr.To[int64](canaryUser), FSGroup: ptr.To[int64](canaryUser),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{p.container(name)},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience: p.spec.Ingest.Audience, ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: "token",
				}}},
			}}}},
		},
	}
	for _, secret := range p.spec.Target.ImagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	return pod
}

func (p *probe) container(name string) corev1.Container {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1.Container{
		Name:  "canary",
		Image: p.spec.CanaryImage,
		Env: []corev1.EnvVar{
			env("CELLCAST_INGEST_URL", p.ingestURL()),
			env("CELLCAST_INGEST_CA", string(p.spec.Ingest.CA)),
			env("CELLCAST_POD", name),
			env("CELLCAST_RUN", p.spec.RunID),
			env("CELLCAST_DEADLINE", postWithin.String()),
		},
		Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
		// What it says last is read with the pod: its logs need another call.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: tokenDir, ReadOnly: true}},
	}
}

// env is a variable with the value as it is: in a pod $(NAME) stands for another.
func env(name, value string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")}
}
