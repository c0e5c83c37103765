package world

import (
	"fmt"
	"path/filepath"
)

// The paths of a node, as they are in its enclave.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	bridgeName       = "cni0"
	// PodRange has the subnets of all nodes, and is all that pods have a route to.
	PodRange = "10.201.0.0/16"
)

// containerdConfig writes what containerd starts from and returns the path of
// its configuration.
//
// Plugins that would make folders outside of the enclave are off. The score of
// the out-of-memory killer is restricted because root mayn't lower it everywhere.
func (n *Node) containerdConfig() (string, error) {
	bin, err := plugins()
	if err != nil {
		return "", err
	}
	networks := filepath.Join(n.cell.dir, "cni")
	if _, err := writeFile(networks, "bridge.conflist", fmt.Appendf(nil, `{
  "cniVersion": "1.0.0",
  "name": "world",
  "plugins": [{
    "type": "bridge",
    "bridge": %q,
    "isGateway": false,
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": "/run/cni",
      "ranges": [[{"subnet": %q, "rangeStart": %q, "gateway": %q}]],
      "routes": [{"dst": %q}]
    }
  }]
}
`, bridgeName, n.enclave.subnet, n.enclave.bridge.Next(), n.enclave.address, PodRange)); err != nil {
		return "", fmt.Errorf("writing the network of pods: %w", err)
	}
	path, err := writeFile(n.cell.dir, "containerd.toml", fmt.Appendf(nil, `version = 3
root = '/run/containerd/root'
state = '/run/containerd'
imports = []
disabled_plugins = [
  'io.containerd.image-verifier.v1.bindir',
  'io.containerd.internal.v1.opt',
  'io.containerd.nri.v1.nri',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.erofs',
]

[grpc]
address = %[1]q

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %[5]q

[plugins.'io.containerd.cri.v1.runtime']
enable_criu = false
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%[2]q]
conf_dir = %[3]q
use_internal_loopback = true

[plugins.'io.containerd.grpc.v1.cri']
stream_server_address = %[4]q

[plugins.'io.containerd.metadata.v1.bolt']
no_sync = true
`, containerdSocket, bin, networks, n.enclave.bridge, PauseImage))
	if err != nil {
		return "", fmt.Errorf("writing containerd's configuration: %w", err)
	}
	return path, nil
}

// kubeletFlags write what the kubelet starts from and return its flags. Nothing
// is evicted, collected or reserved, and nothing of this machine changed.
func (n *Node) kubeletFlags() ([]string, error) {
	c := n.cell
	serving, err := c.ca.serving(n.Address)
	if err != nil {
		return nil, err
	}
	cert, key, err := serving.write(c.dir, "kubelet")
	if err != nil {
		return nil, err
	}
	identity, err := c.User("system:node:"+NodeName, "system:nodes")
	if err != nil {
		return nil, err
	}
	config, err := writeFile(c.dir, "kubelet.yaml", fmt.Appendf(nil, `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
readOnlyPort: 0
healthzPort: 0
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %[4]q}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://%[5]s
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[6]s
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
evictionHard:
  memory.available: "0%%"
  nodefs.available: "0%%"
  nodefs.inodesFree: "0%%"
  imagefs.available: "0%%"
  imagefs.inodesFree: "0%%"
imageGCHighThresholdPercent: 100
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
containerLogMaxSize: 1Mi
podLogsDir: %[7]q
volumePluginDir: /run/kubelet-plugins
resolvConf: ""
`, n.Address, cert, key, filepath.Join(c.dir, "ca.crt"), containerdSocket, n.enclave.id(), filepath.Join(c.world.Dir, "logs", c.Name+"-pods")))
	if err != nil {
		return nil, fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	return []string{
		"--config=" + config,
		"--kubeconfig=" + identity.Kubeconfig,
		"--hostname-override=" + NodeName,
		"--node-ip=" + n.Address,
		"--root-dir=/run/kubelet",
		"--cert-dir=/run/kubelet/pki",
	}, nil
}

// nodeFlags make the API server know its node, as it does in a real cluster: the
// node may do what its pods need and no more, and the API server proves itself to
// it. No controller would take away the taint that new nodes get.
func (c *Cell) nodeFlags() ([]string, error) {
	pair, err := c.ca.client("kube-apiserver", "system:masters")
	if err != nil {
		return nil, err
	}
	cert, key, err := pair.write(c.dir, "kubelet-client")
	if err != nil {
		return nil, err
	}
	return []string{
		"--authorization-mode=Node", // besides RBAC
		"--enable-admission-plugins=NodeRestriction",
		"--disable-admission-plugins=TaintNodesByCondition",
		"--kubelet-certificate-authority=" + filepath.Join(c.dir, "ca.crt"),
		"--kubelet-client-certificate=" + cert,
		"--kubelet-client-key=" + key,
		"--kubelet-preferred-address-types=InternalIP",
	}, nil
}
