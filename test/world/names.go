package world

const (
	// Namespace is where cellcast lives, on the hub and on every cell.
	Namespace = "cellcast-system"
	// HubServiceAccount is the hub's own ServiceAccount, on the hub.
	HubServiceAccount = "cellcast-hub"
	// AgentServiceAccount is the agent's, on a cell.
	AgentServiceAccount = "cellcast-agent"
	// HubSubject is the subject of the hub's tokens.
	HubSubject = "system:serviceaccount:" + Namespace + ":" + HubServiceAccount
	// HubUser is who the hub is on a cell: what RBAC there is bound to.
	HubUser = "cellcast-hub:" + HubSubject

	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)
