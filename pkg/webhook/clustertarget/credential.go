package clustertarget

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// credential keeps the hub from reading for somebody what they can't read
// themselves, or act by it where they couldn't: a Secret that they may not get, a
// path in Vault that isn't under the owner's prefix. It looks where the reference
// is new, where another owner is to have what the hub gets by it, and, for a Secret,
// where it's aimed elsewhere: at another namespace, at pods of another ServiceAccount,
// or for them to show their token to another server. The rest of the spec says what
// is launched there and how, which is what a target is owned for.
func (r rules) credential(ctx context.Context, c change) (field.ErrorList, error) {
	path, ref := field.NewPath("spec", "credentialRef"), c.row.Spec.CredentialRef
	isNew := c.old == nil || !equality.Semantic.DeepEqual(c.old.Spec.CredentialRef, ref)
	isHanded := c.old != nil && c.old.Spec.Owner != c.row.Spec.Owner
	isAimed := c.old != nil && (c.old.Spec.Namespace != c.row.Spec.Namespace ||
		c.old.Spec.ServiceAccountName != c.row.Spec.ServiceAccountName || c.old.Spec.IngestURL != c.row.Spec.IngestURL)
	var errs field.ErrorList
	if isNew && ref.SecretRef == nil && ref.VaultRef == nil {
		errs = append(errs, field.Required(path, "name a secretRef or a vaultRef"))
	}
	if ref.SecretRef != nil && (isNew || isHanded || isAimed) {
		wrong, err := r.secret(ctx, c, ref.SecretRef.Name, path.Child("secretRef"))
		if err != nil {
			return nil, err
		}
		errs = append(errs, wrong...)
	}
	if ref.VaultRef != nil && (isNew || isHanded) {
		errs = append(errs, r.vault(c.row.Spec.Owner, ref.VaultRef.Path, path.Child("vaultRef"))...)
	}
	return errs, nil
}

func (r rules) secret(ctx context.Context, c change, name string, path *field.Path) (field.ErrorList, error) {
	mayGet, err := r.access.Allowed(ctx, c.user, authorizationv1.ResourceAttributes{
		Verb: "get", Version: "v1", Resource: "secrets", Namespace: c.row.Namespace, Name: name,
	})
	if err != nil || mayGet {
		return nil, err
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"you must be allowed to get the Secret %q in the namespace %q: nobody has the hub read what they can't read themselves", name, c.row.Namespace))}, nil
}

func (r rules) vault(owner registry.TargetOwner, secret string, path *field.Path) field.ErrorList {
	if r.vaultPath == nil {
		return field.ErrorList{field.Forbidden(path, "this hub has no Vault: name a secretRef")}
	}
	if owner == (registry.TargetOwner{}) { // which has an error of its own, and no prefix
		return nil
	}
	if err := r.vaultPath(owner, secret); err != nil {
		return field.ErrorList{field.Forbidden(path.Child("path"), err.Error())}
	}
	return nil
}
