package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
)

// hubIssuer knows the issuer of the hub's own ServiceAccount tokens, by the
// discovery document of the hub's API server. It's read once: an API server
// that changes its issuer makes the hub's tokens foreign to every cell anyway.
type hubIssuer struct {
	api rest.Interface

	mu    sync.Mutex
	known string
}

func (h *hubIssuer) get(ctx context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known != "" {
		return h.known, nil
	}
	raw, err := h.api.Get().AbsPath("/.well-known/openid-configuration").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("read the discovery document of the hub's API server: %w", err)
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(raw, &document); err != nil || document.Issuer == "" {
		return "", fmt.Errorf("the discovery document of the hub's API server names no issuer")
	}
	h.known = document.Issuer
	return h.known, nil
}
