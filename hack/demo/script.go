package main

import "slices"

// script is the demo. The pipeline's commands find the hub and its token in the
// environment; the others name their kubeconfig.
func script() []step { return slices.Concat(fleetScript(), targetScript()) }

// fleetScript is about the cells.
func fleetScript() []step {
	return []step{
		{
			title:   "The platform operator sees the fleet. dev-eu is the emptiest cell.",
			command: "kubectl --kubeconfig .demo/hub.kubeconfig get cells",
			says:    []string{"dev-eu", "prod-eu", "prod-us", "LIVE", "Fresh"},
		},
		{
			title:   "A pipeline, known by its CI's token alone, asks where payments/api goes. Policy permits it production only.",
			command: "cellcast place payments/api --explain --write-kubeconfig .demo/payments.kubeconfig",
			says:    []string{"prod-eu", "prod-us", "payments-prod"},
			lacks:   []string{"dev-eu", "eyJ"},
		},
		{
			title:   "It deploys there with the credential that came back, and with nothing else.",
			command: "kubectl --kubeconfig .demo/payments.kubeconfig apply -f hack/demo/deployment.yaml",
			says:    []string{"deployment.apps/api"},
		},
		{
			title:   "The same token may do nothing in another namespace of that cell.",
			command: "kubectl --kubeconfig .demo/payments.kubeconfig -n web get deployments",
			exit:    1,
			says:    []string{"Forbidden"},
		},
		{
			title: "The same token is worthless on another cell.",
			command: "cp .demo/payments.kubeconfig .demo/stolen.kubeconfig && " +
				"kubectl config --kubeconfig .demo/stolen.kubeconfig set-cluster prod-eu --server $(cat .demo/cells/prod-us.url) " +
				"--certificate-authority .demo/cells/prod-us-ca.pem --embed-certs >/dev/null && " +
				"kubectl --kubeconfig .demo/stolen.kubeconfig auth whoami",
			exit: 1,
			says: []string{"Unauthorized"},
		},
		{
			title: "A job gets its credential by a command that ends it: revoked when the command ends, dead in two minutes whatever happens.",
			command: "cellcast exec --workload payments/migrate -- " +
				"sh -c 'kubectl auth whoami && kubectl -n payments get deployments'",
			says:  []string{"it ends with the command", "system:serviceaccount:jobs:deployer"},
			lacks: []string{"eyJ"},
		},
		{
			title: "Revoked means dead, also for whoever kept a copy.",
			command: "cellcast place payments/migrate --write-kubeconfig .demo/job.kubeconfig && " +
				"cp .demo/job.kubeconfig .demo/kept.kubeconfig && cellcast revoke .demo/job.kubeconfig && " +
				"kubectl --kubeconfig .demo/kept.kubeconfig auth whoami",
			exit: 1,
			says: []string{"Unauthorized"},
		},
		{
			title:   "A workload that no policy covers is refused. Exit status 3: refused, and it stays refused.",
			command: "cellcast place billing/api",
			exit:    3,
			says:    []string{"NoPolicy"},
		},
		{
			title:   "A row that carries a credential is refused, wherever it hides; the answer names the field and never the value.",
			command: `kubectl --kubeconfig .demo/hub.kubeconfig annotate cluster prod-eu "note=Bearer $(cat .demo/pipeline.token)"`,
			exit:    1,
			says:    []string{"metadata.annotations[note]"},
			lacks:   []string{"eyJ"},
		},
		{
			title:   "The operator drains prod-eu for an upgrade.",
			command: `kubectl --kubeconfig .demo/hub.kubeconfig patch cluster prod-eu --type merge -p '{"spec":{"state":"DRAINING"}}'`,
			says:    []string{"cluster.registry.cellcast.io/prod-eu patched"},
		},
		{
			title:   "The next placement goes elsewhere; no pipeline was edited.",
			command: "cellcast place payments/api --explain",
			says:    []string{"prod-us", "Draining"},
		},
		{
			title:   "A person asks the same through the hub's API server, with kubectl and the hub's RBAC.",
			command: "kubectl create placement web/shop --kubeconfig .demo/dana.kubeconfig -o name",
			says:    []string{"dev-eu"},
		},
		{
			title:   "What that person may not see, there is no permission for.",
			command: "kubectl --kubeconfig .demo/dana.kubeconfig get clusters",
			exit:    1,
			says:    []string{"Forbidden"},
		},
		{
			title:   "The operator takes prod-eu back.",
			command: `kubectl --kubeconfig .demo/hub.kubeconfig patch cluster prod-eu --type merge -p '{"spec":{"state":"LIVE"}}'`,
			says:    []string{"patched"},
		},
		{
			title: "Before a policy ships, a pull request can ask what it does: which one governs a job, and why not the others.",
			command: "kubectl --kubeconfig .demo/hub.kubeconfig get placementpolicies -o yaml | " +
				"cellcast policy test -f /dev/stdin --claims .demo/claims.json --workload payments/migrate --expect payments-jobs",
			says: []string{"payments-jobs", "payments-prod", "developers"},
		},
	}
}
