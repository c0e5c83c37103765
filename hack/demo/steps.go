package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// step is one thing that the demo shows: a command as a person would type it,
// and what must come of it.
type step struct {
	title   string
	command string
	// exit is the exit status that the command must have.
	exit int
	// says is what its output must contain, lacks what it must not.
	says, lacks []string
}

// script is the demo. The pipeline's commands find the hub and its token in the
// environment; the others name their kubeconfig.
func script() []step {
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
			command: "kubectl create placement web/shop --kubeconfig .demo/user.kubeconfig -o name",
			says:    []string{"dev-eu"},
		},
		{
			title:   "What that person may not see, there is no permission for.",
			command: "kubectl --kubeconfig .demo/user.kubeconfig get clusters",
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

// steps does the script. Every step is shown with its real command and its real
// output; one that comes out otherwise than it must is marked and counted.
func steps(ctx context.Context) error {
	env, err := environment()
	if err != nil {
		return err
	}
	all, passed := script(), 0
	for i, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Printf("\n%2d. %s\n    $ %s\n", i+1, s.title, s.command)
		output, exit, err := sh(ctx, s.command, env)
		if err != nil {
			return err
		}
		for line := range strings.Lines(output) {
			fmt.Printf("    %s", line)
		}
		if exit != 0 {
			fmt.Printf("    (exit status %d)\n", exit)
		}
		if wrong := s.wrong(output, exit); wrong != "" {
			fmt.Printf("    FAILED: %s\n", wrong)
			continue
		}
		passed++
	}
	fmt.Printf("\ndemo: %d of %d steps passed\n", passed, len(all))
	if passed != len(all) {
		return fmt.Errorf("%d steps failed; logs are in %s/logs", len(all)-passed, folder)
	}
	return nil
}

// wrong says what is wrong with how the step came out.
func (s step) wrong(output string, exit int) string {
	if exit != s.exit {
		return fmt.Sprintf("exit status %d, not %d", exit, s.exit)
	}
	for _, text := range s.says {
		if !strings.Contains(output, text) {
			return fmt.Sprintf("the output lacks %q", text)
		}
	}
	for _, text := range s.lacks {
		if strings.Contains(output, text) {
			return fmt.Sprintf("the output has %q", text)
		}
	}
	return ""
}

// environment is what the script's commands run with: our programs first on
// the path, and the pipeline's way to the hub.
func environment() ([]string, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return nil, err
	}
	hub, err := os.ReadFile(filepath.Join(folder, "hub.url"))
	if err != nil {
		return nil, err
	}
	path := bin
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		path += string(os.PathListSeparator) + assets
	}
	return append(os.Environ(),
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG=",
		"CELLCAST_HUB="+string(hub),
		"CELLCAST_HUB_CA="+filepath.Join(folder, "hub-ca.pem"),
		"CELLCAST_TOKEN_FILE="+filepath.Join(folder, "pipeline.token"),
		"CELLCAST_CACHE_DIR="+filepath.Join(folder, "cache"),
	), nil
}
