// Package helpers has wrappers that are judged where they are called.
package helpers

import (
	"context"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "example.com/shop/api/v1"
)

// PatchFrom sends what the caller changed since it copied base.
func PatchFrom(ctx context.Context, c client.Client, obj, base client.Object) error {
	return c.Patch(ctx, obj, client.MergeFrom(base))
}

// PatchLocked does the same with a lock.
func PatchLocked(ctx context.Context, c client.Client, obj, base client.Object) error {
	return c.Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// MutateStatus runs a function and sends what it changed.
func MutateStatus(ctx context.Context, c client.Client, order *shopv1.Order, change func(*shopv1.Order)) error {
	base := order.DeepCopy()
	change(order)
	return c.Status().Patch(ctx, order, client.MergeFrom(base))
}

// CopyVersion makes an update possible.
func CopyVersion(from, to client.Object) {
	to.SetResourceVersion(from.GetResourceVersion())
}

// WithoutFinalizer returns the finalizers without one.
func WithoutFinalizer(finalizers []string, name string) []string {
	var kept []string
	for _, finalizer := range finalizers {
		if finalizer != name {
			kept = append(kept, finalizer)
		}
	}
	return kept
}

// Retry runs a function until it does not conflict.
func Retry(run func() error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, run)
}

// MergeLabels adds labels to existing ones.
func MergeLabels(existing, added map[string]string) map[string]string {
	for key, value := range added {
		existing[key] = value
	}
	return existing
}
