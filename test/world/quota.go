package world

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// countSecrets fills in the status of the quotas on the Secrets of a namespace,
// as the controller of quotas does, which no cell of the world has: an API server
// holds to a quota only from then on. It counts up by itself, but nobody counts
// down: a Secret that is gone still counts.
func (c *ControlPlane) countSecrets(ctx context.Context, namespace string) error {
	client, err := kubernetes.NewForConfig(c.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	quotas, err := client.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the quotas of namespace %s: %w", namespace, err)
	}
	secrets, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("counting the Secrets of namespace %s: %w", namespace, err)
	}
	used := corev1.ResourceList{"count/secrets": *resource.NewQuantity(int64(len(secrets.Items)), resource.DecimalSI)}
	for _, quota := range quotas.Items {
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: used}
		if _, err := client.CoreV1().ResourceQuotas(namespace).UpdateStatus(ctx, &quota, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("writing the status of the quota of namespace %s: %w", namespace, err)
		}
	}
	return nil
}
