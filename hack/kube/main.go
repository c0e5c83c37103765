// Command kube is the control plane that cellcast's demo and tests run on:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubelet
// in one executable, chosen by the name it is called by or else by its first
// argument. One executable links once; the modules' versions and sums are in
// go.mod and go.sum beside this file.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of every component
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric of every component
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if run() {
		return
	}
	if len(os.Args) > 1 {
		os.Args = os.Args[1:]
		if run() {
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: kube etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet [flags]")
	os.Exit(2)
}

// run becomes the component that os.Args[0] names. It returns only when there
// is no component of that name, or when etcd has ended.
func run() bool {
	var command *cobra.Command
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		etcdmain.Main(os.Args)
		return true
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	default:
		return false
	}
	os.Exit(cli.Run(command))
	return true
}
