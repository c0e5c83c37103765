package kubeconfigfile

import (
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Plugin is a program that client-go asks for a token when it needs one.
type Plugin struct {
	// Command is the program, found on the PATH, and Args its arguments.
	Command string
	Args    []string
	// InstallHint is what a user reads who doesn't have it.
	InstallHint string
}

// PluginKubeconfig returns a kubeconfig with one cell and no token: client-go
// asks the plugin, and tells it the server that the token is for. The namespace
// may be empty.
func PluginKubeconfig(cell cellcastv1alpha1.CellReference, namespace string, plugin Plugin) ([]byte, error) {
	if err := reachable(cell); err != nil {
		return nil, err
	}
	user := &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion:         clientauthentication.SchemeGroupVersion.String(),
		Command:            plugin.Command,
		Args:               plugin.Args,
		InstallHint:        plugin.InstallHint,
		ProvideClusterInfo: true,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
	}}
	return write(cell, &clientcmdapi.Context{AuthInfo: "cellcast/" + cell.Name, Namespace: namespace}, user)
}
