package world

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AddNode makes a node that is ready, schedulable, and has so much room. There
// is no kubelet behind it: what is on it is what AddPod puts there.
func (c *ControlPlane) AddNode(ctx context.Context, name string, allocatable corev1.ResourceList) error {
	client, err := kubernetes.NewForConfig(c.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the node %s on %s: %w", name, c.Name, err)
	}
	// Admission taints a new node as not ready, and the controller that would
	// take the taint away doesn't run.
	node.Spec.Taints = nil
	if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("untainting the node %s on %s: %w", name, c.Name, err)
	}
	node.Status.Capacity = allocatable
	node.Status.Allocatable = allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "World"}}
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("filling the node %s on %s: %w", name, c.Name, err)
	}
	return nil
}

// AddPod makes a pod that runs on the node and requests so much. Its namespace
// is made where it doesn't exist.
func (c *ControlPlane) AddPod(ctx context.Context, namespace, name, node string, requests corev1.ResourceList) error {
	// A pod can't be made without its ServiceAccount. That admission is left
	// in place, for the cells that cellcast meets have it too.
	if err := c.EnsureServiceAccount(ctx, namespace, "default"); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	pods := client.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name:      "main",
				Image:     "registry.invalid/none",
				Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the pod %s/%s on %s: %w", namespace, name, c.Name, err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("running the pod %s/%s on %s: %w", namespace, name, c.Name, err)
	}
	return nil
}

// EnsureServiceAccount makes the namespace and the ServiceAccount unless they
// exist.
func (c *ControlPlane) EnsureServiceAccount(ctx context.Context, namespace, name string) error {
	client, err := kubernetes.NewForConfig(c.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	_, err = client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace %s on %s: %w", namespace, c.Name, err)
	}
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the ServiceAccount %s/%s on %s: %w", namespace, name, c.Name, err)
	}
	return nil
}
