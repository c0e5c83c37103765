package main

// The ways of dana, which every command of hers names: to the hub, where she has
// the namespace team-a, and to acme, where she has the namespace shop.
const (
	atHub  = " -n team-a --kubeconfig .demo/dana.kubeconfig"
	onAcme = "kubectl --kubeconfig .demo/acme.kubeconfig -n shop "
	rows   = "kubectl --kubeconfig .demo/dana.kubeconfig -n team-a "
)

// targetScript is about a target that its owner brings.
func targetScript() []step {
	return []step{
		{
			title: "dana brings a namespace of her own, on a cluster that the fleet doesn't manage. No administrator takes part.",
			command: "cellcast target register shop -f .demo/acme.kubeconfig --namespace shop --create-credential " +
				"--label env=dev -n team-a --hub-kubeconfig .demo/dana.kubeconfig",
			says:  []string{"Created Secret cellcast-shop-token", "Created ClusterTarget shop"},
			lacks: []string{"eyJ"},
		},
		{
			title: "The hub proves it by itself. Then somebody on acme takes one verb out of the Role: create pods.",
			command: rows + "wait --for=jsonpath='{.status.state}'=Ready clustertarget/shop --timeout=2m && " +
				onAcme + `patch role cellcast-hub:cellcast-shop --type json -p '[{"op":"remove","path":"/rules/1/verbs/0"}]'`,
			says: []string{"condition met", "patched"},
			pod:  true,
		},
		{
			title:   "A probe says which verb is missing, and prints the Role to apply. Exit status 3: somebody has to mend it.",
			command: "kubectl cellcast probe shop" + atHub,
			exit:    3,
			says:    []string{"Failed   create pods", "kind: Role", "Skipped  Canary", "Failed"},
			pod:     true,
		},
		{
			title: "She runs what was printed, where kubeconfig is her own for acme. It stands in the row, too.",
			command: rows + `get clustertarget shop -o jsonpath='{.status.checks[?(@.name=="Permissions")].remedy}' | ` +
				"(cd .demo && cp acme.kubeconfig kubeconfig && bash)",
			says: []string{"role.rbac.authorization.k8s.io/cellcast-hub:cellcast-shop serverside-applied"},
			pod:  true,
		},
		{
			title:   "Ready again, by a pod that started there, proved who it is and reached the hub.",
			command: "kubectl cellcast probe shop" + atHub + " && " + rows + "get clustertargets",
			says:    []string{"Passed   Canary", "Ready, for ", "dana"},
			pod:     true,
		},
		{
			title:   "What dana may launch onto: the cells that a policy gives her, and what she brought.",
			command: "cellcast targets --kubeconfig .demo/dana.kubeconfig",
			says:    []string{"dev-eu", "shop", "namespace team-a", "user:dana"},
			lacks:   []string{"prod-eu"},
		},
		{
			title:   "Of the credential that she gave it, the hub has one file, in memory, which it alone can read.",
			command: "ls -l $(cat .demo/token-dir)",
			says:    []string{"-rw-------"},
		},
		{
			title: "She gets a token of half an hour for it; the hub keeps none.",
			command: "cellcast target token shop" + atHub + " --write-kubeconfig .demo/shop.kubeconfig && " +
				"kubectl --kubeconfig .demo/shop.kubeconfig auth whoami",
			says:  []string{"system:serviceaccount:shop:default"},
			lacks: []string{"eyJ"},
			pod:   true,
		},
		{
			title: "She revokes what she gave the hub, on acme. Within seconds the hub can do nothing there; at its next look, it says so.",
			command: onAcme + "delete serviceaccount cellcast-shop && " +
				rows + "wait --for=jsonpath='{.status.state}'=CredentialRejected clustertarget/shop --timeout=60s && " +
				rows + "get clustertargets -o wide",
			says: []string{"deleted", "condition met", "refuses the credential (401)"},
			pod:  true,
		},
		{
			title: "A kubeconfig that would have the hub run a program is refused when it's stored; the answer has line and field.",
			command: rows + "create secret generic mine --type=cellcast.io/kubeconfig " +
				"--from-file=kubeconfig=hack/demo/hostile.kubeconfig",
			exit:  1,
			says:  []string{"line 12, users[0].user.exec", "line 8, clusters[0].cluster.certificate-authority"},
			lacks: []string{"/bin/sh", "/etc/ssl"},
		},
		{
			title: "Unregistered, nothing of it is left at the hub: no row, no Secret, no Role, no token.",
			command: "cellcast target unregister shop" + atHub + " && " +
				rows + "get clustertargets,secrets,roles && find $(cat .demo/token-dir) -type f",
			says:  []string{"Deleted ClusterTarget shop", "No resources found"},
			lacks: []string{inMemory},
		},
	}
}
