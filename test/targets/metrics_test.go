package targets

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// readMetrics lets anyone read /metrics for the test, as an operator does whose
// scraper brings no identity that the direct door knows.
func readMetrics(t *testing.T) {
	t.Helper()
	admin := clientset(t, hub.Hub.Admin)
	must(admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "test-metrics"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{}))(t)
	must(admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-metrics"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), "test-metrics", metav1.DeleteOptions{})
		_ = admin.RbacV1().ClusterRoles().Delete(context.Background(), "test-metrics", metav1.DeleteOptions{})
	})
}

// metric is a metric of the hub's that has no labels.
func metric(t *testing.T, name string) int64 {
	t.Helper()
	client := must(rest.HTTPClientFor(hub.Direct("")))(t)
	line := regexp.MustCompile(`(?m)^` + name + ` ([0-9.e+]+)$`)
	var value float64
	eventually(t, "the hub tells "+name, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, hub.Hub.Server.URL+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		match := line.FindSubmatch(text)
		if match == nil {
			return fmt.Errorf("it answers %d, without it", response.StatusCode)
		}
		value, err = strconv.ParseFloat(string(match[1]), 64)
		return err
	})
	return int64(value)
}
